//! Compares one process of the command with a process that does nothing.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::goal::{self, Goal};
use crate::part::Part;
use crate::peers::watchman::Home;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{World, session};
use crate::{Options, progress, sizes};

/// The argument that makes this program do nothing.
pub(crate) const EMPTY: &str = "nothing";

/// The number of files that sessions have read in [`used`].
const USED_FILES: usize = 400;

/// The number of sessions that have read all of them.
const USED_SESSIONS: usize = 10;

#[derive(Default)]
struct Measured {
    nothing: Samples,
    empty: Samples,
    hook: Samples,
    socket: Samples,
    status: Samples,
    cold: Samples,
    first: Samples,
    stored: Samples,
    watchman: Samples,
    watchman_cold: Samples,
}

/// Writes the event that an agent's hook receives before each tool: a file that
/// has been read is about to be read again.
fn hook_event(world: &World) -> Result<PathBuf> {
    let (file, event) = (world.tree.files.first(), world.scratch().join("event.json"));
    let file = file.context("a file")?;
    let text = serde_json::json!({
        "session_id": "bench", "cwd": world.tree.root, "hook_event_name": "PreToolUse",
        "tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": file},
    });
    fs::write(&event, text.to_string())?;
    Ok(event)
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let warm = World::new(&options.binary, 1)?;
    let (_daemon, _client) = warm.start()?;
    let cold = World::new(&options.binary, 1)?;
    let stored = used(options)?;
    let watchman = options.peers.watchman.as_deref();
    let warm_watchman = watchman.map(Home::new).transpose()?;
    let _server = warm_watchman.as_ref().map(Home::start).transpose()?;
    let cold_watchman = watchman.map(Home::new).transpose()?;
    let event = hook_event(&warm)?;
    let mut measured = Measured::default();
    let rounds = options.pick(50, 300);
    for round in 0..rounds {
        progress(&format!("processes, round {} of {rounds}", round + 1));
        let Measured { nothing, empty, .. } = &mut measured;
        run(nothing, &mut Command::new("true"))?;
        // This is the cheapest process of a Rust program.
        run(empty, Command::new(std::env::current_exe()?).arg(EMPTY))?;
        let mut hook = warm.bare_hook();
        hook.arg("claude").stdin(File::open(&event)?);
        run(&mut measured.hook, &mut hook)?;
        run(&mut measured.socket, warm.command().arg("socket"))?;
        run(&mut measured.status, warm.command().arg("status"))?;
        if let Some(home) = &warm_watchman {
            run(&mut measured.watchman, home.command().arg("watch-list"))?;
        }
        // A start takes longer than all measurements above, so it runs in every
        // fifth round only.
        if round % 5 == 0 {
            // `touchmark status` starts no daemon; this command sends the same
            // request and does.
            let mut status = cold.command();
            run(&mut measured.cold, status.args(["call", "status", "{}"]))?;
            run(&mut Samples::default(), cold.command().arg("stop"))?;
            for (world, samples) in [
                (&stored, &mut measured.stored),
                (&World::new(&options.binary, 1)?, &mut measured.first),
            ] {
                run(samples, world.command().args(["call", "status", "{}"]))?;
                run(&mut Samples::default(), world.command().arg("stop"))?;
            }
            if let Some(home) = &cold_watchman {
                run(
                    &mut measured.watchman_cold,
                    home.command().arg("watch-list"),
                )?;
                home.stop()?;
            }
        }
    }
    Ok(tell(options, &measured))
}

/// Returns a workspace in which sessions have worked: several hundred files and
/// several thousand facts are stored. No daemon runs.
fn used(options: &Options) -> Result<World> {
    let world = World::new(&options.binary, USED_FILES)?;
    sizes::settle(options);
    let (daemon, client) = world.start()?;
    for number in 0..USED_SESSIONS {
        let session = session(&format!("s{number}"))?;
        world.read(&client, &session, &world.tree.names)?;
    }
    daemon.stop()?;
    Ok(world)
}

fn run(samples: &mut Samples, command: &mut Command) -> Result<()> {
    let started = Instant::now();
    let done = command
        .status()
        .with_context(|| format!("{command:?} cannot be started"))?;
    samples.add(started.elapsed());
    ensure!(done.success(), "{command:?} ended with {done}");
    Ok(())
}

fn tell(options: &Options, measured: &Measured) -> Part {
    let nothing = measured.nothing.p50();
    let mut part = Part::new(
        "One process",
        "The time from the start of a process to its end. `true` is the floor. The hook gets a \
         read event of Claude Code, sends it to the daemon and prints the answer. Cold: no daemon \
         runs, so the command starts one, which opens its store and listens. The first start in a \
         workspace creates the store, which SQLite syncs to the disk.",
    );
    let rows: [(&str, &Samples); 10] = [
        ("`true`", &measured.nothing),
        ("a Rust program that does nothing", &measured.empty),
        ("`touchmark-hook claude`", &measured.hook),
        ("`touchmark socket`", &measured.socket),
        ("`touchmark status`", &measured.status),
        ("`watchman watch-list`", &measured.watchman),
        ("`touchmark call status`, cold", &measured.cold),
        (
            "the same, 400 files and 4,000 reads are stored",
            &measured.stored,
        ),
        ("the same, first start in a workspace", &measured.first),
        ("`watchman watch-list`, cold", &measured.watchman_cold),
    ];
    for (what, samples) in rows {
        if samples.count() > 0 {
            let row = Row::of(what, samples);
            part.rows.push(row.beside("`true`", samples.p50(), nothing));
        }
    }
    part.rows.extend(options.peers.absent_watchman());
    let p50 = |samples: &Samples| units::duration(samples.p50());
    let peer = |samples: &Samples| (samples.count() > 0).then(|| p50(samples));
    part.goals = vec![
        Goal::new("one hook process", p50(&measured.hook))
            .beside("`true`", units::duration(nothing))
            .beside("an empty Rust program", p50(&measured.empty))
            .at_most(
                1.2,
                "x an empty Rust program",
                goal::times(measured.hook.p50(), Some(measured.empty.p50())),
            ),
        Goal::new("status cold, daemon to be started", p50(&measured.cold))
            .beside_peer("watchman", peer(&measured.watchman_cold))
            .at_most(15.0, "ms", goal::millis(measured.cold.p50())),
    ];
    part
}
