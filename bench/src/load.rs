//! What a daemon does under load: many clients, and a storm of writes.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use touchmark_proto::{State, daemon};

use crate::floor::{self, Echo};
use crate::samples::Samples;
use crate::table::Row;
use crate::world::{World, content, count_in, report, session, state_of, status_of};
use crate::{Options, progress};

/// Synced queries a second from some clients at once.
pub(crate) fn clients(options: &Options) -> Result<Vec<Row>> {
    let world = World::new(&options.binary, 64)?;
    let (daemon, _) = world.start()?;
    let echo = Echo::start(world.scratch())?;
    let session = session("clients")?;
    world.read(&daemon.connect()?, &session, &world.names)?;
    let time = Duration::from_millis(options.pick(300, 1_000));
    let rounds = options.pick(3, 5);
    let mut rows = Vec::new();
    for (count, goal) in [(1, ""), (8, "80,000 /s"), (64, "")] {
        progress(&format!("{count} clients"));
        let (mut floors, mut rates) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            floors.push(rate(count, time, || {
                let mut pinger = echo.connect()?;
                Ok(move |_| pinger.ping())
            })?);
            rates.push(rate(count, time, || {
                let client = daemon.connect()?;
                let (names, session) = (&world.names, &session);
                Ok(move |n: usize| {
                    let name = names.get(n % names.len()).map_or("", String::as_str);
                    state_of(&client, status_of(session, name, true)).map(drop)
                })
            })?);
        }
        let (floor, rate) = (median(floors), median(rates));
        rows.push(
            Row::value(
                &format!("{count} clients, synced status"),
                format!("{rate:.0} /s"),
            )
            .against(&format!("ping-pong {floor:.0} /s"), rate, floor)
            .goal(goal),
        );
    }
    Ok(rows)
}

/// Repetitions a second of `count` threads, each with a connection.
fn rate<F>(count: usize, time: Duration, connect: impl Fn() -> Result<F> + Sync) -> Result<f64>
where
    F: FnMut(usize) -> Result<()>,
{
    let begin = Barrier::new(count);
    let work = |thread: usize| -> Result<usize> {
        // All wait for all, whoever could not connect as well.
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

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Every tracked file is rewritten by one thread, as fast as it can.
pub(crate) fn storm(options: &Options) -> Result<Vec<Row>> {
    let count = options.pick(2_000, 10_000);
    let rounds = options.pick(4, 10);
    let world = World::new(&options.binary, count)?;
    // The same files once more, which nobody watches.
    let alone = World::new(&options.binary, count)?;
    let mut contents = 1_000_000;
    let mut rewrite = |world: &World| -> Result<Duration> {
        let started = Instant::now();
        for file in &world.files {
            contents += 1;
            fs::write(file, content(contents))?;
        }
        Ok(started.elapsed())
    };
    let (daemon, _) = world.start()?;
    let client = daemon.connect()?;
    let (mut unwatched, mut hashed) = (Samples::default(), Samples::default());
    let (mut written, mut after) = (Samples::default(), Samples::default());
    let (mut lost, mut memory) = (0, Vec::new());
    for round in 0..rounds {
        progress(&format!("storm {} of {rounds}, {count} files", round + 1));
        let reader = session(&format!("storm-{round}"))?;
        world.read(&client, &reader, &world.names)?;
        // Whichever comes first may wait for the disk: they take turns.
        if round % 2 == 0 {
            unwatched.add(rewrite(&alone)?);
        }
        hashed.add(floor::hash_sweep(&alone.files)?);
        written.add(rewrite(&world)?);
        after.time(|| client.call(daemon::Sync {}))?;
        lost += count - count_in(&client, &reader, State::Stale)?;
        if round % 2 == 1 {
            unwatched.add(rewrite(&alone)?);
        }
        memory.push(crate::process::Usage::of(daemon.pid())?.resident);
    }
    let overflows = report(&client)?.counters.overflows;
    let mebibytes = |bytes: Option<&u64>| bytes.copied().unwrap_or(0) as f64 / (1 << 20) as f64;
    Ok(vec![
        Row::of(&format!("writing {count} files, daemon watching"), &written)
            .over("unwatched", written.p50(), unwatched.p50())
            .goal("<= 1.1 x"),
        Row::of("from the last write to the sync's answer", &after)
            .over("read and hash all", after.p50(), hashed.p50())
            .goal("<= 1 x"),
        Row::value("changes lost", format!("{lost} of {}", count * rounds)).goal("0"),
        Row::value("queue overflows", overflows.to_string()),
        Row::value(
            "memory after the first and the last storm",
            format!(
                "{:.1} -> {:.1} MiB",
                mebibytes(memory.first()),
                mebibytes(memory.last())
            ),
        ),
    ])
}

/// The argument by which this program does nothing.
pub(crate) const EMPTY: &str = "nothing";

/// An event as an agent's hook gets it before each tool: a file that has been
/// read is about to be read again.
fn hook_event(world: &World) -> Result<std::path::PathBuf> {
    let (file, event) = (world.files.first(), world.scratch().join("event.json"));
    let file = file.context("a file")?;
    let text = serde_json::json!({
        "session_id": "bench", "cwd": world.root, "hook_event_name": "PreToolUse",
        "tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": file},
    });
    std::fs::write(&event, text.to_string())?;
    Ok(event)
}

/// A process of the command against a process that does nothing.
pub(crate) fn processes(options: &Options) -> Result<Vec<Row>> {
    let world = World::new(&options.binary, 1)?;
    let (_daemon, _) = world.start()?;
    let [mut nothing, mut empty, mut socket, mut status, mut hook]: [Samples; 5] =
        Default::default();
    let event = hook_event(&world)?;
    progress("processes");
    for _ in 0..options.pick(50, 300) {
        nothing.time(|| std::process::Command::new("true").status())?;
        // As little as a program of this language can be.
        let mut process = std::process::Command::new(std::env::current_exe()?);
        empty.time(|| process.arg(EMPTY).status())?;
        let mut process = world.bare_command();
        process
            .args(["hook", "claude"])
            .stdin(std::fs::File::open(&event)?);
        hook.time(|| process.status())?;
        for (command, samples) in [("socket", &mut socket), ("status", &mut status)] {
            let mut process = world.command();
            let done = samples.time(|| process.arg(command).status());
            done.context("the command cannot be started")?;
        }
    }
    Ok(vec![
        Row::of("a process that does nothing", &nothing),
        Row::of("a Rust program that does nothing", &empty),
        Row::of("one hook process", &hook)
            .over("nothing", hook.p50(), nothing.p50())
            .goal("<= 3 x"),
        Row::of("the same", &hook).over("a Rust program", hook.p50(), empty.p50()),
        Row::of("touchmark socket", &socket).over("nothing", socket.p50(), nothing.p50()),
        Row::of("touchmark status", &status)
            .over("nothing", status.p50(), nothing.p50())
            .goal("<= 3 x"),
    ])
}
