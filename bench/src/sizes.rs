//! Workspaces of 100 to 100,000 tracked files, each with a daemon.

mod growing;
mod growth;
mod memory;
mod overflow;
mod quiet;
mod start;

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use touchmark_client::blocking::Client;
use touchmark_proto::{SessionId, State};

use crate::part::Part;
use crate::peers::watchman::Watched;
use crate::tree::Contents;
use crate::units;
use crate::world::{CALM, Daemon, World, all_in, session};
use crate::{Options, progress};

/// The sizes for which goals are set.
const SMALL: usize = 10_000;
const LARGE: usize = 100_000;

/// The age after which a stat is enough to prove a content (FILE-5).
const SETTLED: Duration = Duration::from_secs(61);

/// A workspace of one size. One session has read all of its files, and a
/// separate watchman watches it as well.
struct Size {
    client: Client,
    session: SessionId,
    daemon: Daemon,
    watchman: Option<Watched>,
    world: World,
    contents: Contents,
}

impl Size {
    fn new(options: &Options, world: World) -> Result<Self> {
        let count = world.tree.count();
        progress(&format!("{} tracked files", units::count(count)));
        let session = session("sizes")?;
        let (daemon, client) = world.start()?;
        world.read(&client, &session, &world.tree.names)?;
        let fresh = all_in(&client, &session, State::Fresh)?.len();
        ensure!(fresh == count, "{fresh} of {count} files are fresh");
        let watchman = options.peers.watchman.as_deref();
        Ok(Self {
            watchman: watchman
                .map(|program| Watched::new(program, &world.tree))
                .transpose()?,
            client,
            session,
            daemon,
            world,
            contents: Contents::default(),
        })
    }

    fn count(&self) -> usize {
        self.world.tree.count()
    }
}

/// Waits until a stat of the files is enough to prove what is read from now on
/// (FILE-5), as in a workspace that is older. A quick run does not wait, so
/// contents are compared instead.
pub(crate) fn settle(options: &Options) {
    if !options.quick {
        progress("a minute in which nobody writes");
        thread::sleep(SETTLED);
    }
}

pub(crate) fn parts(options: &Options) -> Result<Vec<Part>> {
    let counts: &[usize] = options.pick(&[100, 1_000, SMALL], &[100, 1_000, SMALL, LARGE]);
    let worlds = counts
        .iter()
        .map(|&count| World::new(&options.binary, count));
    let worlds = worlds.collect::<Result<Vec<_>>>()?;
    settle(options);
    let mut sizes = Vec::new();
    for world in worlds {
        sizes.push(Size::new(options, world)?);
    }
    thread::sleep(CALM);
    let mut memory = memory::Measured::default();
    memory.note(&sizes, memory::JUST_READ)?;
    memory.chokidar(options, &sizes)?;
    let growth = growth::part(options, &mut sizes)?;
    let quiet = quiet::part(options, &mut sizes)?;
    let growing = growing::part(options)?;
    let overflow = overflow::part(options, &mut sizes)?;
    settle(options);
    let start = start::part(options, sizes, &mut memory)?;
    Ok(vec![
        growth,
        growing,
        overflow,
        start,
        memory.part(options),
        quiet,
    ])
}
