//! Measures one status next to a tracked file of 1 GiB that grows ten times per
//! second.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use touchmark_proto::State;

use crate::goal::{self, Goal};
use crate::part::Part;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{World, read_of, session, state_of, status_of};
use crate::{Options, progress};

const LOG: &str = "grows.log";
const LOG_BYTES: usize = 1 << 30;

/// The number of bytes added each time.
const LINE_BYTES: usize = 4 << 10;

const EVERY: Duration = Duration::from_millis(100);

/// The number of other files, which do not change.
const FILES: usize = 100;

/// The pause between two queries, since an agent does not query without pause.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn part(options: &Options) -> Result<Part> {
    progress("a status beside a file of 1 GiB that grows");
    let world = World::new(&options.binary, FILES)?;
    let log = world.tree.root.join(LOG);
    fs::write(&log, vec![b'x'; LOG_BYTES])?;
    let (_daemon, client) = world.start()?;
    let session = session("growing")?;
    world.read(&client, &session, &world.tree.names)?;
    client.call(read_of(&session, LOG, true))?;
    let log = File::options().append(true).open(log)?;
    let ask = |samples: &mut Samples| -> Result<()> {
        let until = Instant::now() + Duration::from_secs(options.pick(3, 15));
        for n in 0.. {
            if Instant::now() > until {
                break;
            }
            let name = world.tree.names.get(n % FILES).context("a file")?;
            let query = status_of(&session, name, true);
            let file = samples.time(|| state_of(&client, query))?;
            ensure!(file.state == State::Fresh, "an unchanged file is not fresh");
            thread::sleep(PAUSE);
        }
        Ok(())
    };
    let (mut quiet, mut beside) = (Samples::default(), Samples::default());
    ask(&mut quiet)?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| grow(&log, &ended));
        let asked = ask(&mut beside);
        ended.store(true, Ordering::Relaxed);
        let written = writer.join();
        ensure!(
            matches!(written, Ok(Ok(()))),
            "the log could not be written"
        );
        asked
    })?;
    Ok(tell(&quiet, &beside))
}

fn grow(mut log: &File, ended: &AtomicBool) -> std::io::Result<()> {
    while !ended.load(Ordering::Relaxed) {
        log.write_all(&[b'x'; LINE_BYTES])?;
        thread::sleep(EVERY);
    }
    Ok(())
}

fn tell(quiet: &Samples, beside: &Samples) -> Part {
    let mut part = Part::new(
        "Next to a large file that grows",
        "One file's status, with a fence, every 2 ms. A log of 1 GiB is tracked too, and 4 KiB \
         are appended to it ten times a second.",
    );
    let growing = Row::of("one status, beside the log as it grows", beside);
    part.rows.extend([
        Row::of("one status, the log at rest", quiet),
        growing.beside("at rest", beside.p50(), quiet.p50()),
    ]);
    let points = beside.points();
    part.goals.push(
        Goal::new(
            "one status beside a growing file of 1 GiB",
            format!("p99 {}", units::duration(points.p99)),
        )
        .beside("at rest, p99", units::duration(quiet.points().p99))
        .at_most(20.0, "ms at p99", goal::millis(points.p99)),
    );
    part
}
