//! Workspaces of 100 to 100,000 tracked files, each with its daemon.

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

/// Sizes that goals are set for.
const SMALL: usize = 10_000;
const LARGE: usize = 100_000;

/// A stat that lies back this long vouches for a content.
const SETTLED: Duration = Duration::from_secs(61);

/// A workspace of one size, all of it read by one session, and watched by a
/// watchman of its own as well.
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

/// Waits until a stat of the files vouches for what is read from now on
/// (FILE-5), as in a workspace that somebody else made. A quick run does not,
/// and compares contents instead.
fn settle(options: &Options) {
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
