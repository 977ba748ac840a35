//! Measures storms: one thread rewrites every tracked file as fast as it can.

mod stage;

use std::thread;

use anyhow::Result;

use crate::goal::{self, Goal};
use crate::part::Part;
use crate::plot::{Kind, Plot, Series, Up, Who};
use crate::process::Memory;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{CALM, report};
use crate::{Options, progress};

use stage::{Round, Stage};

/// The numbers of storms and of files for which the goals are set.
const STORMS: usize = 10;
const MOST: usize = 100_000;

/// The results of several rounds with the same number of changes.
#[derive(Default)]
struct Rounds {
    changes: usize,
    hashed: Samples,
    unwatched: Samples,
    written: Samples,
    after: Samples,
    lost: usize,
    nobodys: usize,
    watchman_written: Samples,
    watchman_after: Samples,
    watchman_lost: usize,
}

impl Rounds {
    fn run(stage: &mut Stage, changes: usize, rounds: usize) -> Result<Self> {
        let mut all = Self {
            changes,
            ..Self::default()
        };
        for round in 0..rounds {
            progress(&format!(
                "{} changes, round {} of {rounds}",
                units::count(changes),
                round + 1
            ));
            all.add(&stage.round(changes)?);
        }
        Ok(all)
    }

    fn add(&mut self, round: &Round) {
        self.hashed.add(round.hashed);
        self.unwatched.add(round.unwatched);
        self.written.add(round.own.written);
        self.after.add(round.own.after);
        self.lost += round.own.lost;
        self.nobodys += round.nobodys;
        if let Some(watchman) = &round.watchman {
            self.watchman_written.add(watchman.written);
            self.watchman_after.add(watchman.after);
            self.watchman_lost += watchman.lost;
        }
    }

    fn of_all(&self, lost: usize) -> String {
        let all = self.changes * self.after.count();
        format!("{} of {}", units::count(lost), units::count(all))
    }
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let count = options.pick(10_000, MOST);
    let mut stage = Stage::new(options, count)?;
    thread::sleep(CALM);
    let before = Memory::of(stage.daemon.pid())?;
    let storms = Rounds::run(&mut stage, count, options.pick(4, STORMS))?;
    thread::sleep(CALM);
    let after = Memory::of(stage.daemon.pid())?;
    let overflows = report(&stage.client)?.counters.overflows;
    let mut growth = Vec::new();
    let mut changes = 1;
    while changes < count {
        growth.push(Rounds::run(&mut stage, changes, options.pick(3, 7))?);
        changes *= 10;
    }

    let mut part = Part::new(
        "A storm of writes",
        "One thread rewrites all tracked files, 1 KiB each, as fast as it can: in an unwatched \
         tree, in touchmark's, in watchman's, in turns. Then it sends a query and waits until the \
         answer has all changes. By then touchmark has read and hashed every file and decided its \
         author; watchman has its name, size and time. The floor is one thread that reads and \
         hashes the same files. Each answer was compared with the files.",
    );
    rows(&mut part, &storms);
    part.rows
        .push(Row::value("queue overflows", overflows.to_string()));
    part.rows.push(Row::value(
        format!(
            "private memory, {} tracked: before, and after {} storms",
            units::count(count),
            storms.after.count()
        ),
        format!(
            "{} -> {}",
            units::megabytes(before.private),
            units::megabytes(after.private)
        ),
    ));
    for rounds in &growth {
        part.rows.push(
            Row::of(
                format!("{} changes, then synced", units::count(rounds.changes)),
                &rounds.after,
            )
            .beside("read and hash", rounds.after.p50(), rounds.hashed.p50())
            .beside("watchman", rounds.after.p50(), rounds.watchman_after.p50()),
        );
    }
    part.rows.extend(options.peers.absent_watchman());
    part.goals = goals(&storms, count, before, after);
    growth.push(storms);
    part.plots.push(plot(&growth));
    Ok(part)
}

fn rows(part: &mut Part, storms: &Rounds) {
    let count = units::count(storms.changes);
    part.rows.extend([
        Row::of(
            format!("writing {count} files, unwatched"),
            &storms.unwatched,
        ),
        Row::of(
            format!("writing {count} files, touchmark watching"),
            &storms.written,
        )
        .beside("unwatched", storms.written.p50(), storms.unwatched.p50()),
        Row::of("reading and hashing them, one thread", &storms.hashed),
        Row::of(
            "from the last write to touchmark's synced answer",
            &storms.after,
        )
        .beside("read and hash", storms.after.p50(), storms.hashed.p50()),
        Row::value(
            "changes lost or wrong, touchmark",
            storms.of_all(storms.lost),
        ),
        Row::value(
            "of unknown authors, touchmark",
            storms.of_all(storms.nobodys),
        ),
    ]);
    if storms.watchman_after.count() > 0 {
        part.rows.extend([
            Row::of(
                format!("writing {count} files, watchman watching"),
                &storms.watchman_written,
            )
            .beside(
                "unwatched",
                storms.watchman_written.p50(),
                storms.unwatched.p50(),
            ),
            Row::of(
                "from the last write to watchman's synced answer",
                &storms.watchman_after,
            ),
            Row::value(
                "changes lost, watchman",
                storms.of_all(storms.watchman_lost),
            ),
        ]);
    }
}

fn goals(storms: &Rounds, count: usize, before: Memory, after: Memory) -> Vec<Goal> {
    let watchman = (storms.watchman_after.count() > 0).then(|| {
        format!(
            "{}, {} lost",
            units::duration(storms.watchman_after.p50()),
            storms.watchman_lost
        )
    });
    let mut goals = vec![
        Goal::new(
            match count {
                MOST => "storm: 100,000 tracked files rewritten",
                _ => "storm: 10,000 tracked files rewritten",
            },
            format!(
                "{} after the end, {} lost",
                units::duration(storms.after.p50()),
                storms.lost
            ),
        )
        .beside("read and hash", units::duration(storms.hashed.p50()))
        .beside_peer("watchman", watchman)
        .at_most(0.0, "lost", storms.lost as f64)
        .at_most(0.0, "of unknown authors", storms.nobodys as f64)
        .at_most(
            1.3,
            "x read and hash",
            goal::times(storms.after.p50(), storms.hashed.p50()),
        ),
        Goal::new(
            "writers during the storm",
            units::duration(storms.written.p50()),
        )
        .beside("unwatched", units::duration(storms.unwatched.p50()))
        .at_most(
            1.5,
            "x unwatched",
            goal::times(storms.written.p50(), storms.unwatched.p50()),
        ),
    ];
    if count == MOST {
        goals.push(
            Goal::new(
                "memory after ten storms, 100,000 tracked",
                units::megabytes(after.private),
            )
            .beside("before", units::megabytes(before.private))
            .at_most(
                1.3,
                "x before",
                after.private as f64 / before.private.max(1) as f64,
            ),
        );
    }
    goals
}

/// A plotted series: its name, its program, and its samples.
type Drawn = (&'static str, Who, fn(&Rounds) -> &Samples);

fn plot(growth: &[Rounds]) -> Plot {
    const DRAWN: [Drawn; 3] = [
        ("read and hash, one thread", Who::Floor, |rounds| {
            &rounds.hashed
        }),
        ("touchmark", Who::Touchmark, |rounds| &rounds.after),
        ("watchman", Who::Watchman, |rounds| &rounds.watchman_after),
    ];
    let series = DRAWN.map(|(name, who, samples)| {
        let measured = growth
            .iter()
            .map(|rounds| (rounds.changes, samples(rounds)));
        Series::of_medians(name, who, measured)
    });
    Plot {
        name: "changes",
        title: "From the last of many writes to the answer that has them all".into(),
        kind: Kind::Lines {
            across: "files written",
            up: Up::Time,
            series: series.into(),
        },
    }
}
