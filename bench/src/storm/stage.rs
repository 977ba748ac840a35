//! Three trees: one that touchmark watches, one that watchman watches, and one
//! that is not watched.

use std::time::{Duration, Instant};

use anyhow::Result;
use touchmark_client::blocking::Client;
use touchmark_proto::{AuthorKind, SessionId, State, daemon};

use crate::Options;
use crate::floor::hash_sweep;
use crate::peers::watchman::{Watched, files_of};
use crate::tree::{Contents, Tree};
use crate::world::{Daemon, World, all_in, is_as_on_disk, is_by, session};

pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) daemon: Daemon,
    session: SessionId,
    world: World,
    watchman: Option<(Watched, Tree)>,
    bare: Tree,
    contents: Contents,
    turn: usize,
    /// The number of the first files that are stale since the last round.
    stale: usize,
}

/// The results of writing some files once.
pub(super) struct Round {
    /// The time of reading and hashing the same number of files.
    pub(super) hashed: Duration,
    /// The time of writing the files where no program watches.
    pub(super) unwatched: Duration,
    pub(super) own: Watching,
    /// The number of changes that were reported, but not attributed to the
    /// user.
    pub(super) nobodys: usize,
    pub(super) watchman: Option<Watching>,
}

/// The results of writing watched files.
pub(super) struct Watching {
    pub(super) written: Duration,
    /// The time from the last write to the answer.
    pub(super) after: Duration,
    pub(super) lost: usize,
}

impl Stage {
    /// Creates the trees. One session has read all files.
    pub(super) fn new(options: &Options, count: usize) -> Result<Self> {
        let world = World::new(&options.binary, count)?;
        let (daemon, client) = world.start()?;
        let session = session("storm")?;
        world.read(&client, &session, &world.tree.names)?;
        let watchman = options.peers.watched(count)?;
        Ok(Self {
            client,
            daemon,
            session,
            world,
            watchman,
            bare: Tree::new(count)?,
            contents: Contents::default(),
            turn: 0,
            stale: 0,
        })
    }

    /// Writes the first files of each tree. The order changes each round, since
    /// the first writer may wait for the disk.
    pub(super) fn round(&mut self, changes: usize) -> Result<Round> {
        self.turn += 1;
        // All copies must be fresh before a round; a larger round may have left
        // stale ones.
        let names = self.world.tree.names.get(..self.stale.max(changes));
        self.world
            .read(&self.client, &self.session, names.unwrap_or_default())?;
        self.stale = changes;
        let (mut unwatched, mut own, mut watchman) = (Duration::ZERO, None, None);
        for step in 0..3 {
            match (self.turn + step) % 3 {
                0 => {
                    let started = Instant::now();
                    self.bare.rewrite(changes, &mut self.contents)?;
                    unwatched = started.elapsed();
                }
                1 => own = Some(self.own(changes)?),
                _ => watchman = self.watchman(changes)?,
            }
        }
        let files = self.bare.files.get(..changes).unwrap_or_default();
        let (own, nobodys) = own.unwrap_or((Watching::NOTHING, 0));
        Ok(Round {
            hashed: hash_sweep(files)?,
            unwatched,
            own,
            nobodys,
            watchman,
        })
    }

    fn own(&mut self, changes: usize) -> Result<(Watching, usize)> {
        let started = Instant::now();
        self.world.tree.rewrite(changes, &mut self.contents)?;
        let written = started.elapsed();
        self.client.call(daemon::Sync {})?;
        let after = started.elapsed() - written;

        let stale = all_in(&self.client, &self.session, State::Stale)?;
        let mut right = 0;
        let mut nobodys = 0;
        for file in &stale {
            right += usize::from(is_as_on_disk(&self.world.tree, file)?);
            nobodys += usize::from(!is_by(file.changed_by.as_deref(), AuthorKind::User));
        }
        let watching = Watching {
            written,
            after,
            lost: changes.abs_diff(right),
        };
        Ok((watching, nobodys))
    }

    fn watchman(&mut self, changes: usize) -> Result<Option<Watching>> {
        let Some((watched, tree)) = &mut self.watchman else {
            return Ok(None);
        };
        let started = Instant::now();
        tree.rewrite(changes, &mut self.contents)?;
        let written = started.elapsed();
        let told = watched.since(tree)?;
        let after = started.elapsed() - written;
        Ok(Some(Watching {
            written,
            after,
            lost: changes.saturating_sub(files_of(&told)),
        }))
    }
}

impl Watching {
    const NOTHING: Self = Self {
        written: Duration::ZERO,
        after: Duration::ZERO,
        lost: 0,
    };
}
