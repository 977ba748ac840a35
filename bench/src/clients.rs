//! Measures synced queries per second for several numbers of clients.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use touchmark_proto::{SessionId, State};

use crate::floor::Echo;
use crate::goal::Goal;
use crate::part::Part;
use crate::peers::watchman::{Watched, files_of};
use crate::plot::{Kind, Plot, Series, Up, Who};
use crate::table::Row;
use crate::tree::Tree;
use crate::units;
use crate::world::{Daemon, World, session, state_of, status_of};
use crate::{Options, progress};

/// The number of clients for which the goal is set.
const GOAL: usize = 8;

/// The number of files that are queried.
const FILES: usize = 64;

/// The programs, in the order of the rates.
const PROGRAMS: [(&str, Who); 3] = [
    ("socket ping-pong", Who::Floor),
    ("touchmark", Who::Touchmark),
    ("watchman", Who::Watchman),
];

pub(crate) fn part(options: &Options) -> Result<Part> {
    let counts: &[usize] = options.pick(&[1, GOAL, 64], &[1, 2, 4, GOAL, 16, 32, 64]);
    let mut measured = Vec::new();
    let stage = Stage::new(options)?;
    let time = Duration::from_millis(options.pick(200, 500));
    for &count in counts {
        progress(&format!("{count} clients"));
        let mut rates: [Vec<f64>; 3] = Default::default();
        for _ in 0..options.pick(3, 5) {
            let round = stage.round(count, time)?;
            for (rates, rate) in rates.iter_mut().zip(round) {
                rates.extend(rate);
            }
        }
        let [floor, own, watchman] = rates;
        measured.push((count, [best(&floor), median(own), median(watchman)]));
    }
    Ok(tell(options, &measured))
}

/// The running programs that are measured.
struct Stage {
    echo: Echo,
    world: World,
    daemon: Daemon,
    session: SessionId,
    watchman: Option<(Watched, Tree)>,
}

impl Stage {
    fn new(options: &Options) -> Result<Self> {
        let world = World::new(&options.binary, FILES)?;
        let (daemon, client) = world.start()?;
        let session = session("clients")?;
        world.read(&client, &session, &world.tree.names)?;
        let watchman = options.peers.watched(FILES)?;
        Ok(Self {
            echo: Echo::start(world.scratch())?,
            world,
            daemon,
            session,
            watchman,
        })
    }

    /// Returns the rates in the order of the programs; `None` if a program is
    /// not installed.
    fn round(&self, count: usize, time: Duration) -> Result<[Option<f64>; 3]> {
        let floor = rate(count, time, || {
            let mut pinger = self.echo.connect()?;
            Ok(move |_| pinger.ping())
        })?;
        let names = &self.world.tree.names;
        let own = rate(count, time, || {
            let client = self.daemon.connect()?;
            Ok(move |n: usize| {
                let name = names.get(n % names.len()).map_or("", String::as_str);
                let file = state_of(&client, status_of(&self.session, name, true))?;
                ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
                Ok(())
            })
        })?;
        let watchman = match &self.watchman {
            Some((watched, tree)) => Some(rate(count, time, || {
                let mut connection = watched.server().connect()?;
                let clock = connection.watch(tree)?;
                Ok(move |_| {
                    let changes = connection.since(tree, &clock)?;
                    ensure!(files_of(&changes) == 0, "watchman tells of no change");
                    Ok(())
                })
            })?),
            None => None,
        };
        Ok([Some(floor), Some(own), watchman])
    }
}

fn tell(options: &Options, measured: &[(usize, [f64; 3])]) -> Part {
    let mut part = Part::new(
        "Many clients",
        "Threads of one program, each with a connection, send one query after the other, as fast \
         as answers come: `file/status` with a fence, watchman's synced `since`, and a plain \
         ping-pong. The numbers are medians of rounds; of the ping-pong it is the best round, \
         since a floor is what the machine can do. Queries that arrive together share a fence.",
    );
    for &(count, [floor, own, watchman]) in measured {
        let row = |name: &str, rate: f64| {
            let what = format!("{count} clients: {name}");
            Row::value(what, units::rate(rate))
        };
        part.rows.push(row("ping-pong", floor));
        part.rows.push(
            row("touchmark", own)
                .against("ping-pong", own, floor)
                .against("watchman", own, watchman),
        );
        if watchman > 0.0 {
            part.rows.push(row("watchman", watchman));
        }
        if count == GOAL {
            let beside = (watchman > 0.0).then(|| units::rate(watchman));
            part.goals.push(
                Goal::new("8 clients, synced queries", units::rate(own))
                    .beside("ping-pong", units::rate(floor))
                    .beside_peer("watchman", beside)
                    .at_least(80_000.0, "/s", own),
            );
        }
    }
    part.rows.extend(options.peers.absent_watchman());
    let series = PROGRAMS.iter().enumerate().map(|(program, (name, who))| {
        let points = measured.iter().filter_map(|(count, rates)| {
            let rate = *rates.get(program)?;
            (rate > 0.0).then_some((*count as f64, rate))
        });
        Series {
            name: (*name).into(),
            who: *who,
            points: points.collect(),
        }
    });
    part.plots.push(Plot {
        name: "clients",
        title: "Synced queries a second".into(),
        kind: Kind::Lines {
            across: "clients",
            up: Up::AnswersPerSecond,
            series: series.collect(),
        },
    });
    part
}

/// Returns the repetitions per second of `count` threads together, each with
/// its own connection.
fn rate<F>(count: usize, time: Duration, connect: impl Fn() -> Result<F> + Sync) -> Result<f64>
where
    F: FnMut(usize) -> Result<()>,
{
    let begin = Barrier::new(count);
    let work = |thread: usize| -> Result<usize> {
        // A thread that could not connect must reach the barrier too, or the
        // others would wait without end.
        let connected = connect();
        begin.wait();
        let mut repetition = connected?;
        let started = Instant::now();
        let mut done = 0;
        while started.elapsed() < time {
            repetition(thread + done)?;
            done += 1;
        }
        Ok(done)
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let mut done = 0;
        for thread in threads {
            done += thread
                .join()
                .map_err(|_| anyhow::anyhow!("a client's thread died"))??;
        }
        Ok(done as f64 / time.as_secs_f64())
    })
}

/// Returns the highest rate; 0 if there is none.
fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// Returns the median; 0 if there are no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
