//! The programs and files that the measurements use.

use std::path::Path;

use anyhow::Result;
use touchmark_client::blocking::Client;
use touchmark_proto::SessionId;

use crate::Options;
use crate::floor::{Echo, Pinger};
use crate::peers::chokidar::Watcher;
use crate::peers::watchman::{Changes, Watched};
use crate::queue::Queue;
use crate::tree::{Contents, Tree};
use crate::world::{Daemon, World, session};

/// The number of files in each tree.
const FILES: usize = 100;

/// Indexes of the files that are written. Files from [`FIRST_READ`] on are only
/// read.
pub(super) const WRITTEN: usize = 0;
pub(super) const TAKEN: usize = 1;
pub(super) const MARKED: usize = 2;
const FIRST_READ: usize = 10;

/// The running programs. Each has a separate tree, so that writes for one
/// program cause no work for another.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) session: SessionId,
    pub(super) pinger: Pinger,
    /// A ping-pong whose other end drains a queue of the writes in `bare`.
    pub(super) draining: Pinger,
    pub(super) watchman: Option<Watchman>,
    pub(super) chokidar: Option<Chokidar>,
    /// Another daemon, which watches through the `notify` crate.
    pub(super) notify: Notify,
    pub(super) contents: Contents,
    pub(super) world: World,
    bare: Tree,
    new_names: Queue,
    turn: usize,
    _ended_with_it: (Daemon, Echo, Echo),
}

/// A daemon that watches through the `notify` crate, with a separate world.
pub(super) struct Notify {
    pub(super) client: Client,
    pub(super) session: SessionId,
    pub(super) world: World,
    _daemon: Daemon,
}

/// watchman with a tree.
pub(super) struct Watchman {
    watched: Watched,
    tree: Tree,
}

/// chokidar with a tree.
pub(super) struct Chokidar {
    watcher: Watcher,
    tree: Tree,
}

impl Stage {
    pub(super) fn new(options: &Options) -> Result<Self> {
        let world = World::new(&options.binary, FILES)?;
        let (daemon, client) = world.start()?;
        let session = session("requests")?;
        world.read(&client, &session, &world.tree.names)?;
        let bare = Tree::new(FILES)?;
        let watched: Vec<&Path> = bare.directories().collect();
        let echo = Echo::start(world.scratch())?;
        let watching_echo = Echo::start_watching(world.scratch(), &watched)?;
        let own = world.tree.directories().chain([&*world.tree.root]);
        let peers = &options.peers;
        Ok(Self {
            client,
            session,
            pinger: echo.connect()?,
            draining: watching_echo.connect()?,
            watchman: peers.watchman.as_deref().map(Watchman::new).transpose()?,
            chokidar: match &peers.chokidar {
                Some(program) => {
                    let tree = Tree::new(FILES)?;
                    let watcher = program.watch(&tree.files)?;
                    Some(Chokidar { watcher, tree })
                }
                None => None,
            },
            notify: Notify::new(options)?,
            contents: Contents::default(),
            new_names: Queue::of_new_names(own)?,
            world,
            bare,
            turn: 0,
            _ended_with_it: (daemon, echo, watching_echo),
        })
    }

    pub(super) fn name(&self, file: usize) -> &str {
        self.world.tree.names.get(file).map_or("", String::as_str)
    }

    pub(super) fn path(&self, file: usize) -> &Path {
        path(&self.world.tree, file)
    }

    /// Returns the path of the file that the floor writes.
    pub(super) fn bare_path(&self) -> &Path {
        path(&self.bare, WRITTEN)
    }

    /// Returns the name of a file that is never written, a different one each
    /// time.
    pub(super) fn any_read_file(&mut self) -> String {
        self.turn += 1;
        let file = FIRST_READ + self.turn % (FILES - FIRST_READ);
        self.name(file).to_owned()
    }

    /// Returns the number of files created in the workspace since the last
    /// call.
    pub(super) fn new_names(&self) -> Result<usize> {
        self.new_names.drain()
    }
}

impl Notify {
    fn new(options: &Options) -> Result<Self> {
        let world = World::new(&options.binary, FILES)?;
        world.watch_through_notify()?;
        let (daemon, client) = world.start()?;
        let session = session("notify")?;
        world.read(&client, &session, &world.tree.names)?;
        Ok(Self {
            client,
            session,
            world,
            _daemon: daemon,
        })
    }

    pub(super) fn name(&self, file: usize) -> &str {
        self.world.tree.names.get(file).map_or("", String::as_str)
    }

    pub(super) fn path(&self, file: usize) -> &Path {
        path(&self.world.tree, file)
    }
}

impl Watchman {
    fn new(program: &Path) -> Result<Self> {
        let tree = Tree::new(FILES)?;
        let watched = Watched::new(program, &tree)?;
        Ok(Self { watched, tree })
    }

    pub(super) fn file(&self) -> &Path {
        path(&self.tree, WRITTEN)
    }

    pub(super) fn since(&mut self) -> Result<Changes> {
        self.watched.since(&self.tree)
    }
}

impl Chokidar {
    pub(super) fn file(&self) -> &Path {
        path(&self.tree, WRITTEN)
    }

    /// Waits for chokidar to report a change.
    pub(super) fn told(&self) -> Result<String> {
        self.watcher.next()
    }
}

fn path(tree: &Tree, file: usize) -> &Path {
    tree.files.get(file).unwrap_or(&tree.root)
}
