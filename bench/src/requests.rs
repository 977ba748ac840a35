//! Measures single requests, alternating with floors and peers.

mod stage;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use touchmark_client::hash_of;
use touchmark_proto::changes::ModifiedTake;
use touchmark_proto::daemon::Ping;
use touchmark_proto::edits::EditMark;
use touchmark_proto::{AuthorKind, HashOrAbsent, State};

use crate::goal::{self, Goal};
use crate::part::Part;
use crate::peers::watchman::files_of;
use crate::plot::{Kind, Plot, Span, Who};
use crate::samples::Samples;
use crate::table::Row;
use crate::tree::write_in_place;
use crate::units;
use crate::world::{is_by, read_of, report, state_of, status_of};
use crate::{Options, progress};

use stage::{MARKED, Stage, TAKEN, WRITTEN};

/// A measurement.
struct Measure {
    what: &'static str,
    beside: Beside,
    repetition: fn(&mut Stage, &mut Samples) -> Result<()>,
    /// The number of repetitions per round.
    block: usize,
    /// The program that the measurement belongs to, if it is plotted.
    drawn: Option<Who>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// A floor, which is compared with nothing.
    Nothing,
    Echo,
    Write,
}

const ECHO: &str = "socket ping-pong, 64 bytes";
const WRITE: &str = "write 1 KiB, ping-pong that empties a queue, read and hash";
const UNFENCED: &str = "file/status, no fence";
const FENCED: &str = "file/status, fence";
const FENCED_NOTIFY: &str = "file/status, fence, watch = \"notify\"";
const READ: &str = "file/read, committed, no fence";
const WATCHMAN: &str = "watchman: synced since, nothing changed";
const WRITE_STATUS: &str = "write 1 KiB, then synced status";
const WRITE_NOTIFY: &str = "write 1 KiB, then synced status, watch = \"notify\"";
const WRITE_WATCHMAN: &str = "watchman: write 1 KiB, then synced since";
const WRITE_CHOKIDAR: &str = "chokidar: write 1 KiB, then told";

const MEASURES: &[Measure] = &[
    Measure::new(ECHO, Beside::Nothing, echo, 400).drawn(Who::Floor),
    Measure::new(
        "ping-pong that empties an inotify queue",
        Beside::Echo,
        draining_echo,
        400,
    ),
    Measure::new("ping", Beside::Echo, ping, 200),
    Measure::new(UNFENCED, Beside::Echo, status_unfenced, 200).drawn(Who::Touchmark),
    Measure::new(FENCED, Beside::Echo, status_fenced, 200).drawn(Who::Touchmark),
    Measure::new(FENCED_NOTIFY, Beside::Echo, status_notify, 100),
    Measure::new(WATCHMAN, Beside::Echo, watchman, 100).drawn(Who::Watchman),
    Measure::new(READ, Beside::Echo, read_unfenced, 100).drawn(Who::Touchmark),
    Measure::new(
        "file/read, committed, fence",
        Beside::Echo,
        read_fenced,
        100,
    ),
    Measure::new(WRITE, Beside::Nothing, write_floor, 100).drawn(Who::Floor),
    Measure::new(WRITE_STATUS, Beside::Write, write_status, 100).drawn(Who::Touchmark),
    Measure::new(WRITE_NOTIFY, Beside::Write, write_status_notify, 50),
    Measure::new(
        "write 1 KiB, then modified/take",
        Beside::Write,
        write_take,
        100,
    ),
    Measure::new(
        "edit/mark, write 1 KiB, synced status",
        Beside::Write,
        mark_write_status,
        100,
    ),
    Measure::new(WRITE_WATCHMAN, Beside::Write, write_watchman, 50).drawn(Who::Watchman),
    // Each of these takes a tenth of a second.
    Measure::new(WRITE_CHOKIDAR, Beside::Write, write_chokidar, 1).drawn(Who::Chokidar),
];

impl Measure {
    const fn new(
        what: &'static str,
        beside: Beside,
        repetition: fn(&mut Stage, &mut Samples) -> Result<()>,
        block: usize,
    ) -> Self {
        Self {
            what,
            beside,
            repetition,
            block,
            drawn: None,
        }
    }

    const fn drawn(mut self, who: Who) -> Self {
        self.drawn = Some(who);
        self
    }
}

/// The samples of all measurements, in the order of `MEASURES`.
struct Results(Vec<Samples>);

impl Results {
    fn of(&self, what: &str) -> Option<&Samples> {
        let mut pairs = MEASURES.iter().zip(&self.0);
        let (_, samples) = pairs.find(|(measure, _)| measure.what == what)?;
        (samples.count() > 0).then_some(samples)
    }

    fn p50(&self, what: &str) -> Duration {
        self.of(what).map(Samples::p50).unwrap_or_default()
    }
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let mut stage = Stage::new(options)?;
    let mut results = Results(vec![Samples::default(); MEASURES.len()]);
    let rounds = options.pick(20, 100);
    // The first round warms up and is not counted.
    for round in 0..=rounds {
        progress(&format!("single requests, round {round} of {rounds}"));
        for (measure, samples) in MEASURES.iter().zip(&mut results.0) {
            let mut unused = Samples::default();
            let kept = if round == 0 { &mut unused } else { samples };
            for _ in 0..measure.block {
                (measure.repetition)(&mut stage, kept)?;
            }
        }
    }
    let made = stage.new_names()?;
    let lasting = checkpoints(options, &stage)?;
    Ok(tell(options, &results, made, &lasting))
}

/// Reads over several seconds, while the store's checkpoints run.
struct Lasting {
    reads: Samples,
    checkpoints: usize,
}

/// Reads until the store has made some checkpoints.
fn checkpoints(options: &Options, stage: &Stage) -> Result<Lasting> {
    let store = report(&stage.client)?.store.path;
    let written = || fs::metadata(&store).and_then(|store| store.modified()).ok();
    let mut reads = Samples::default();
    let mut checkpoints = 0;
    let mut last = written();
    progress("reads over checkpoints of the store");
    let until = Instant::now() + Duration::from_secs(options.pick(4, 15));
    while Instant::now() < until {
        // Only a checkpoint writes the store's main file; commits write its
        // log.
        let now = written();
        checkpoints += usize::from(now != last);
        last = now;
        for n in 0..200 {
            let name = stage.name(n % stage.world.tree.count());
            let request = read_of(&stage.session, name, false);
            reads.time(|| stage.client.call(request))?;
        }
    }
    Ok(Lasting { reads, checkpoints })
}

fn tell(options: &Options, results: &Results, made: usize, lasting: &Lasting) -> Part {
    let mut part = Part::new(
        "One request at a time",
        "One open connection, 100 tracked files of 1 KiB. Each line was measured once in each \
         round. With a fence, an answer covers all writes before the query. Watchman is queried \
         for changes since its last answer, with its own cookie file; chokidar reports without a \
         query. On Linux touchmark uses inotify directly, not through the `notify` crate: it can \
         empty the system's queue at the query, while with the crate it has to wait for the event \
         of a cookie. The rows with `watch = \"notify\"` show the difference.",
    );
    for (measure, samples) in MEASURES.iter().zip(&results.0) {
        if samples.count() == 0 {
            continue;
        }
        let row = Row::of(measure.what, samples);
        part.rows.push(match measure.beside {
            Beside::Nothing => row,
            Beside::Echo => row.beside("ping-pong", samples.p50(), results.p50(ECHO)),
            Beside::Write => row.beside("the write's floor", samples.p50(), results.p50(WRITE)),
        });
    }
    part.rows.push(
        Row::of(
            format!(
                "file/read for seconds on end, {} checkpoints of the store",
                lasting.checkpoints
            ),
            &lasting.reads,
        )
        .beside("ping-pong", lasting.reads.p50(), results.p50(ECHO)),
    );
    part.rows.extend(options.peers.absent_watchman());
    part.rows.extend(options.peers.absent_chokidar());
    part.goals = goals(results, made, lasting);
    part.plots.push(Plot {
        name: "requests",
        title: "One request: from the median over p99 to p99.9".into(),
        kind: Kind::Spans(spans(results)),
    });
    part
}

fn goals(results: &Results, made: usize, lasting: &Lasting) -> Vec<Goal> {
    let p50 = |what| results.p50(what);
    let said = |what| units::duration(results.p50(what));
    let peer = |what| results.of(what).map(Samples::p50);
    let lasting = lasting.reads.points();
    vec![
        Goal::new("file/status with fence", said(FENCED))
            .beside("ping-pong", said(ECHO))
            .beside_peer("watchman", peer(WATCHMAN).map(units::duration))
            .at_most(0.4, "x watchman", goal::times(p50(FENCED), peer(WATCHMAN))),
        Goal::new(
            "file/read recorded and committed",
            format!(
                "{}, p99.9 {}, worst {}",
                said(READ),
                units::duration(lasting.p999),
                units::duration(lasting.worst)
            ),
        )
        .beside("ping-pong", said(ECHO))
        // Where client and daemon run on different processors, waking the other
        // one adds to each answer. So only values that were measured in turn
        // are compared.
        .at_most(4.0, "x ping-pong at p50", goal::times(p50(READ), p50(ECHO)))
        .at_most(1.0, "ms at p99.9", goal::millis(lasting.p999)),
        Goal::new(
            "write 1 KiB, then a synced query shows it",
            said(WRITE_STATUS),
        )
        .beside("the same without a daemon", said(WRITE))
        .beside_peer("watchman", peer(WRITE_WATCHMAN).map(units::duration))
        .beside_peer("chokidar", peer(WRITE_CHOKIDAR).map(units::duration))
        .at_most(
            0.28,
            "x watchman",
            goal::times(p50(WRITE_STATUS), peer(WRITE_WATCHMAN)),
        )
        .at_most(0.0, "files made in the user's tree", made as f64),
    ]
}

fn spans(results: &Results) -> Vec<Span> {
    let drawn = MEASURES.iter().filter_map(|measure| {
        let points = results.of(measure.what)?.points();
        Some(Span {
            name: measure.what.into(),
            who: measure.drawn?,
            micros: [points.p50, points.p99, points.p999].map(goal::micros),
        })
    });
    drawn.collect()
}

fn echo(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    samples.time(|| stage.pinger.ping())
}

fn draining_echo(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    samples.time(|| stage.draining.ping())
}

fn write_floor(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let bytes = stage.contents.next();
    samples.time(|| {
        write_in_place(stage.bare_path(), &bytes)?;
        stage.draining.ping()?;
        hash_of(&fs::read(stage.bare_path())?);
        Ok(())
    })
}

fn ping(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    samples.time(|| stage.client.call(Ping {}))?;
    Ok(())
}

fn status_unfenced(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    status(stage, samples, false)
}

fn status_fenced(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    status(stage, samples, true)
}

fn status(stage: &mut Stage, samples: &mut Samples, sync: bool) -> Result<()> {
    let name = stage.any_read_file();
    let query = status_of(&stage.session, &name, sync);
    let file = samples.time(|| state_of(&stage.client, query))?;
    ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
    Ok(())
}

fn read_unfenced(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    read(stage, samples, false)
}

fn read_fenced(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    read(stage, samples, true)
}

fn read(stage: &mut Stage, samples: &mut Samples, sync: bool) -> Result<()> {
    let name = stage.any_read_file();
    let request = read_of(&stage.session, &name, sync);
    samples.time(|| stage.client.call(request))?;
    Ok(())
}

fn write_status(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let bytes = stage.contents.next();
    let hash = hash_of(&bytes);
    let query = status_of(&stage.session, stage.name(WRITTEN), true);
    let file = samples.time(|| {
        write_in_place(stage.path(WRITTEN), &bytes)?;
        state_of(&stage.client, query)
    })?;
    ensure!(file.hash == Some(hash), "a write was missed (SYNC-1)");
    ensure!(
        is_by(file.changed_by.as_deref(), AuthorKind::User),
        "a user's write is not the user's"
    );
    Ok(())
}

fn status_notify(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let notify = &stage.notify;
    let query = status_of(&notify.session, notify.name(TAKEN), true);
    let file = samples.time(|| state_of(&notify.client, query))?;
    ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
    Ok(())
}

fn write_status_notify(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let bytes = stage.contents.next();
    let hash = hash_of(&bytes);
    let notify = &stage.notify;
    let query = status_of(&notify.session, notify.name(WRITTEN), true);
    let file = samples.time(|| {
        write_in_place(notify.path(WRITTEN), &bytes)?;
        state_of(&notify.client, query)
    })?;
    ensure!(file.hash == Some(hash), "a write was missed (SYNC-1)");
    Ok(())
}

fn write_take(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let bytes = stage.contents.next();
    let hash = hash_of(&bytes);
    let take = ModifiedTake::new(stage.session.clone()).paths(vec![stage.name(TAKEN).into()]);
    let taken = samples.time(|| -> Result<_> {
        write_in_place(stage.path(TAKEN), &bytes)?;
        Ok(stage.client.call(take)?)
    })?;
    ensure!(
        matches!(&*taken.changes, [change] if change.hash == Some(hash)
            && is_by(Some(&change.changed_by), AuthorKind::User)),
        "a user's write was not handed out"
    );
    Ok(())
}

fn mark_write_status(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let bytes = stage.contents.next();
    let hash = hash_of(&bytes);
    let mark =
        EditMark::new(stage.session.clone(), stage.name(MARKED)).expect(HashOrAbsent::Hash(hash));
    let query = status_of(&stage.session, stage.name(MARKED), true);
    let file = samples.time(|| {
        stage.client.call(mark)?;
        write_in_place(stage.path(MARKED), &bytes)?;
        state_of(&stage.client, query)
    })?;
    ensure!(
        file.hash == Some(hash) && file.state == State::Fresh,
        "a declared write is not the agent's"
    );
    Ok(())
}

fn watchman(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let Some(watched) = &mut stage.watchman else {
        return Ok(());
    };
    let changes = samples.time(|| watched.since())?;
    ensure!(
        files_of(&changes) == 0,
        "watchman tells of files that did not change"
    );
    Ok(())
}

fn write_watchman(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let Some(watched) = &mut stage.watchman else {
        return Ok(());
    };
    let bytes = stage.contents.next();
    let changes = samples.time(|| {
        write_in_place(watched.file(), &bytes)?;
        watched.since()
    })?;
    ensure!(files_of(&changes) == 1, "watchman missed a write");
    // watchman may report one write in two answers.
    watched.since()?;
    Ok(())
}

fn write_chokidar(stage: &mut Stage, samples: &mut Samples) -> Result<()> {
    let Some(watched) = &mut stage.chokidar else {
        return Ok(());
    };
    let bytes = stage.contents.next();
    let told = samples.time(|| {
        write_in_place(watched.file(), &bytes)?;
        watched.told()
    })?;
    ensure!(
        Path::new(&told) == watched.file(),
        "chokidar tells of another file"
    );
    Ok(())
}
