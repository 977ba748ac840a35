//! What grows with the number of tracked files, and what idling costs.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use touchmark_client::blocking::Client;
use touchmark_proto::{SessionId, State};

use crate::floor::{hash_sweep, stat_sweep};
use crate::process::Usage;
use crate::samples::Samples;
use crate::table::{Row, duration};
use crate::world::{Daemon, World, count_in, report, session, state_of, status_of};
use crate::{Options, progress};

/// Tracked files of the workspaces.
const SIZES: [usize; 3] = [LEAST, 1_000, MOST];
const LEAST: usize = 100;
const MOST: usize = 10_000;

/// Queries of one workspace before it is the next one's turn.
const GROWTH_BLOCK: usize = 100;

/// Untracked files of the churn.
const CHURN: usize = 20_000;

/// The runtime's own threads end within this time after the last request.
const CALM: Duration = Duration::from_secs(2);

/// The rows of one size of workspace, by section.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) growth: Vec<Row>,
    pub(crate) start: Vec<Row>,
    pub(crate) memory: Vec<Row>,
    pub(crate) idle: Vec<Row>,
}

/// A workspace of one size with its daemon, everything read by one session.
struct Size {
    world: World,
    daemon: Daemon,
    client: Client,
    session: SessionId,
}

impl Size {
    fn new(options: &Options, count: usize) -> Result<Self> {
        progress(&format!("{count} tracked files"));
        let world = World::new(&options.binary, count)?;
        let session = session("scale")?;
        let (daemon, _) = world.start()?;
        let client = daemon.connect()?;
        world.read(&client, &session, &world.names)?;
        let fresh = count_in(&client, &session, State::Fresh)?;
        ensure!(fresh == count, "{fresh} of {count} files are fresh");
        Ok(Self {
            world,
            daemon,
            client,
            session,
        })
    }

    fn count(&self) -> usize {
        self.world.names.len()
    }
}

pub(crate) fn rows(options: &Options) -> Result<Rows> {
    let mut rows = Rows::default();
    if options.wants("start") {
        rows.start.extend(empty_start(options)?);
    }
    let mut sizes = Vec::new();
    for count in SIZES {
        sizes.push(Size::new(options, count)?);
    }
    rows.memory = memory(&sizes)?;
    if options.wants("scale") {
        rows.growth = growth(options, &sizes)?;
    }
    for size in sizes {
        let Size { world, daemon, .. } = size;
        daemon.stop()?;
        if world.names.len() > LEAST && options.wants("start") {
            rows.start.extend(start(options, &world)?);
        }
        if world.names.len() == MOST && options.wants("idle") {
            idle(options, &world, &mut rows)?;
        }
    }
    Ok(rows)
}

/// Resident memory while files are tracked, just after they were read.
fn memory(sizes: &[Size]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut least = 0.0;
    for size in sizes {
        let resident = mebibytes(Usage::of(size.daemon.pid())?.resident);
        if size.count() == LEAST {
            least = resident;
        }
        let what = format!("resident, {} tracked, just read", size.count());
        rows.push(
            Row::value(&what, format!("{resident:.1} MiB"))
                .against(&format!("{LEAST} tracked"), resident, least)
                .goal(if size.count() == MOST { "12 MiB" } else { "" }),
        );
    }
    Ok(rows)
}

/// One status as the number of tracked files grows, the sizes in turn.
fn growth(options: &Options, sizes: &[Size]) -> Result<Vec<Row>> {
    let mut samples = vec![[Samples::default(), Samples::default()]; sizes.len()];
    progress("one status, as tracked files grow");
    for round in 0..options.pick(20, 100) {
        for (size, samples) in sizes.iter().zip(&mut samples) {
            for n in 0..GROWTH_BLOCK {
                let n = round * GROWTH_BLOCK + n;
                let name = size.world.names.get(n * 7 % size.count());
                let name = name.map_or("", String::as_str);
                for (samples, sync) in samples.iter_mut().zip([false, true]) {
                    let query = status_of(&size.session, name, sync);
                    samples.time(|| state_of(&size.client, query))?;
                }
            }
        }
    }
    let mut rows = Vec::new();
    for (kind, what) in ["no fence", "fence"].into_iter().enumerate() {
        let of = |samples: &[Samples; 2]| samples.get(kind).cloned().unwrap_or_default();
        let least = samples.first().map(of).unwrap_or_default().p50();
        for (size, samples) in sizes.iter().zip(&samples) {
            let samples = of(samples);
            rows.push(
                Row::of(
                    &format!("one status, {what}, {} tracked", size.count()),
                    &samples,
                )
                .over(&format!("{LEAST} tracked"), samples.p50(), least)
                .goal("<= 1.2 x"),
            );
        }
    }
    Ok(rows)
}

/// From the start of the process to the first answer, nothing tracked.
fn empty_start(options: &Options) -> Result<Vec<Row>> {
    let world = World::new(&options.binary, 1)?;
    let mut ready = Samples::default();
    for _ in 0..options.pick(5, 20) {
        let (daemon, took) = world.start()?;
        ready.add(took);
        daemon.stop()?;
    }
    Ok(vec![
        Row::of("ready, nothing tracked", &ready).goal("15 ms"),
    ])
}

/// From the start of the process to the first answer as of now, with state on
/// disk.
fn start(options: &Options, world: &World) -> Result<Vec<Row>> {
    let (mut ready, mut stat, mut hash) =
        (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..options.pick(3, 10) {
        stat.add(stat_sweep(&world.files)?);
        hash.add(hash_sweep(&world.files)?);
        let (daemon, took) = world.start()?;
        ready.add(took);
        daemon.stop()?;
    }
    let count = world.names.len();
    let goal = if count == MOST { "20 ms, 2 x" } else { "2 x" };
    Ok(vec![
        Row::of(&format!("ready, {count} tracked"), &ready)
            .over("stat sweep", ready.p50(), stat.p50())
            .goal(goal),
        Row::of(&format!("read and hash {count} files, one thread"), &hash).over(
            "stat sweep",
            hash.p50(),
            stat.p50(),
        ),
    ])
}

/// What a daemon does while nobody asks it anything.
fn idle(options: &Options, world: &World, rows: &mut Rows) -> Result<()> {
    let (daemon, _) = world.start()?;
    let client = daemon.connect()?;
    let events = report(&client)?.counters.events;
    thread::sleep(CALM);

    let pause = Duration::from_secs(options.pick(5, 60));
    let before = Usage::of(daemon.pid())?;
    progress(&format!("idle for {}", duration(pause)));
    thread::sleep(pause);
    let used = Usage::of(daemon.pid())?.since(before);
    rows.idle.push(usage(
        &format!("idle for {} s, connected", pause.as_secs()),
        used,
    ));

    let before = Usage::of(daemon.pid())?;
    for file in &world.files {
        fs::read(file)?;
    }
    let used = Usage::of(daemon.pid())?.since(before);
    rows.idle
        .push(usage("others read 10,000 tracked files", used));

    let untracked = world.root.join("untracked");
    fs::create_dir(&untracked)?;
    let before = Usage::of(daemon.pid())?;
    for n in 0..CHURN {
        let file = untracked.join(n.to_string());
        fs::write(&file, b"x")?;
        fs::remove_file(&file)?;
    }
    let used = Usage::of(daemon.pid())?.since(before);
    rows.idle
        .push(usage("20,000 untracked files made and removed", used));

    let events = report(&client)?.counters.events - events;
    rows.idle
        .push(Row::value("events taken in during all of that", events.to_string()).goal("0"));
    let resident = mebibytes(Usage::of(daemon.pid())?.resident);
    rows.memory.push(
        Row::value(
            &format!("resident, {MOST} tracked, started anew"),
            format!("{resident:.1} MiB"),
        )
        .goal("12 MiB"),
    );
    Ok(())
}

fn usage(what: &str, used: Usage) -> Row {
    Row::value(
        what,
        format!("{} wake-ups, {:.2} s CPU", used.sleeps, used.seconds()),
    )
    .goal("0")
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
