//! Everything that a repetition needs.

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

/// Files of each tree.
const FILES: usize = 100;

/// Files that are written to; those from [`FIRST_READ`] on are only read.
pub(super) const WRITTEN: usize = 0;
pub(super) const TAKEN: usize = 1;
pub(super) const MARKED: usize = 2;
const FIRST_READ: usize = 10;

/// Each program has a tree of its own, so that nobody else has work by what
/// is written for one.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) session: SessionId,
    pub(super) pinger: Pinger,
    /// Its other end empties a queue of what is written in `bare`.
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

/// A daemon on the `notify` crate, with a world of its own.
pub(super) struct Notify {
    pub(super) client: Client,
    pub(super) session: SessionId,
    pub(super) world: World,
    _daemon: Daemon,
}

/// Watchman with a tree.
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

    /// The file of the floor.
    pub(super) fn bare_path(&self) -> &Path {
        path(&self.bare, WRITTEN)
    }

    /// Another file each time, of those that nobody writes to.
    pub(super) fn any_read_file(&mut self) -> String {
        self.turn += 1;
        let file = FIRST_READ + self.turn % (FILES - FIRST_READ);
        self.name(file).to_owned()
    }

    /// How many files were made in the workspace, since the stage was set.
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

    /// Waits to be told of a change.
    pub(super) fn told(&self) -> Result<String> {
        self.watcher.next()
    }
}

fn path(tree: &Tree, file: usize) -> &Path {
    tree.files.get(file).unwrap_or(&tree.root)
}
