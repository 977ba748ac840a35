//! Measures the time from the start of the process to the first right answer,
//! with state on disk.

use std::fs;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use touchmark_proto::{SessionId, State};

use super::memory;
use super::{LARGE, SMALL, Size};
use crate::floor::{hash_sweep, stat_sweep};
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::peers::watchman::Home;
use crate::plot::{Kind, Plot, Series, Up, Who};
use crate::samples::Samples;
use crate::table::Row;
use crate::tree::Contents;
use crate::units;
use crate::world::{CALM, Daemon, World, all_in, is_as_on_disk};
use crate::{Options, progress};

/// A workspace whose daemon and watchman were stopped.
struct Ended {
    session: SessionId,
    watchman: Option<Home>,
    world: World,
    contents: Contents,
    measured: Measured,
}

#[derive(Default)]
struct Measured {
    stat: Samples,
    hash: Samples,
    own: Samples,
    watchman: Samples,
}

pub(super) fn part(
    options: &Options,
    sizes: Vec<Size>,
    memory: &mut memory::Measured,
) -> Result<Part> {
    let mut ended = Vec::new();
    for size in sizes {
        ended.push(Ended::new(size)?);
    }
    let rounds = options.pick(3, 7);
    for round in 0..rounds {
        progress(&format!("starts, round {} of {rounds}", round + 1));
        for ended in &mut ended {
            ended.round()?;
        }
    }
    let mut daemons = Vec::new();
    for ended in &mut ended {
        daemons.push(ended.own()?);
    }
    thread::sleep(CALM);
    for (ended, daemon) in ended.iter().zip(&daemons) {
        memory.started(ended.world.tree.count(), daemon.pid())?;
    }
    Ok(tell(options, &ended))
}

impl Ended {
    fn new(size: Size) -> Result<Self> {
        // Only the file that is changed between two runs may be stale.
        let names = &size.world.tree.names;
        size.world.read(&size.client, &size.session, names)?;
        size.daemon.stop()?;
        Ok(Self {
            session: size.session,
            watchman: size.watchman.map(|watched| watched.stop()).transpose()?,
            world: size.world,
            contents: size.contents,
            measured: Measured::default(),
        })
    }

    fn round(&mut self) -> Result<()> {
        let files = &self.world.tree.files;
        self.measured.stat.add(stat_sweep(files)?);
        self.measured.hash.add(hash_sweep(files)?);
        self.own()?.stop()?;
        if let Some(home) = &self.watchman {
            let started = Instant::now();
            let server = home.start()?;
            server.connect()?.watch(&self.world.tree)?;
            self.measured.watchman.add(started.elapsed());
            server.stop()?;
        }
        Ok(())
    }

    /// Measures the daemon's first answer after a file was changed while it did
    /// not run. The answer is right if it names this file and no other.
    fn own(&mut self) -> Result<Daemon> {
        let tree = &self.world.tree;
        let (file, name) = (tree.files.last(), tree.names.last());
        fs::write(file.context("a file")?, self.contents.next())?;

        let started = Instant::now();
        let (daemon, client) = self.world.start()?;
        let stale = all_in(&client, &self.session, State::Stale)?;
        self.measured.own.add(started.elapsed());

        let [changed] = &*stale else {
            anyhow::bail!("{} files are stale after a start, not one", stale.len());
        };
        ensure!(
            is_as_on_disk(tree, changed)?,
            "a change while nobody watched was missed"
        );
        let name = name.cloned().context("a file")?;
        self.world.read(&client, &self.session, &[name])?;
        Ok(daemon)
    }
}

fn tell(options: &Options, ended: &[Ended]) -> Part {
    let mut part = Part::new(
        "From the start to the first answer",
        "The time from the start of the process until it has answered which of all tracked files \
         are stale. Its state is on disk, and one file has changed while it did not run. For \
         watchman: until it has listed its files, with its own state on disk. The floor is a stat \
         of each file.",
    );
    for ended in ended {
        let count = ended.world.tree.count();
        let tracked = units::count(count);
        let Measured {
            stat,
            hash,
            own,
            watchman,
        } = &ended.measured;
        part.rows.extend([
            Row::of(format!("{tracked} tracked: stat sweep"), stat),
            Row::of(
                format!("{tracked} tracked: read and hash, one thread"),
                hash,
            ),
            Row::of(format!("{tracked} tracked: touchmark ready"), own)
                .beside("stat sweep", own.p50(), stat.p50())
                .beside("watchman", own.p50(), watchman.p50()),
        ]);
        if watchman.count() > 0 {
            let what = format!("{tracked} tracked: watchman ready");
            let row = Row::of(what, watchman);
            part.rows
                .push(row.beside("stat sweep", watchman.p50(), stat.p50()));
        }
        part.goals.extend(goal(count, &ended.measured));
    }
    part.rows.extend(options.peers.absent_watchman());
    part.plots.push(plot(ended));
    part
}

fn goal(count: usize, measured: &Measured) -> Option<Goal> {
    // A start without files takes longer than a stat of 10,000 files, so only
    // the larger workspace is compared with the stats.
    let (what, most_watchman, most_stat) = match count {
        SMALL => ("ready after start, 10,000 tracked", 0.8, None),
        LARGE => ("ready after start, 100,000 tracked", 0.5, Some(2.5)),
        _ => return None,
    };
    let (own, stat) = (measured.own.p50(), measured.stat.p50());
    let watchman = &measured.watchman;
    let watchman = (watchman.count() > 0).then(|| watchman.p50());
    let goal = Goal::new(what, units::duration(own))
        .beside("stat sweep", units::duration(stat))
        .beside_peer("watchman", watchman.map(units::duration))
        .at_most(most_watchman, "x watchman", goal::times(own, watchman));
    Some(match most_stat {
        Some(most) => goal.at_most(most, "x stat sweep", goal::times(own, stat)),
        None => goal,
    })
}

/// A plotted series: its name, its program, and its samples.
type Drawn = (&'static str, Who, fn(&Measured) -> &Samples);

fn plot(ended: &[Ended]) -> Plot {
    const DRAWN: [Drawn; 3] = [
        ("stat sweep", Who::Floor, |measured| &measured.stat),
        ("touchmark", Who::Touchmark, |measured| &measured.own),
        ("watchman", Who::Watchman, |measured| &measured.watchman),
    ];
    let series = DRAWN.map(|(name, who, samples)| {
        let measured = ended
            .iter()
            .map(|ended| (ended.world.tree.count(), samples(&ended.measured)));
        Series::of_medians(name, who, measured)
    });
    Plot {
        name: "start",
        title: "From the start of the process to the first answer".into(),
        kind: Kind::Lines {
            across: "tracked files",
            up: Up::Time,
            series: series.into(),
        },
    }
}
