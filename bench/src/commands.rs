//! Measures the time that touchmark adds to an agent's shell command, and the
//! time of an undo of what a command changed.
//!
//! The workspace is a git repository whose files are committed and which no
//! session has read, so a window finds a change only by its scope (SCOPE-1).

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use touchmark_client::blocking::Client;
use touchmark_proto::SessionId;
use touchmark_proto::commands::{CommandBegin, CommandEnd, CommandScope};
use touchmark_proto::undo::{Redo, Undo, UndoOutcome, Undone};

use crate::floor;
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::samples::Samples;
use crate::table::Row;
use crate::tree::write_in_place;
use crate::units;
use crate::world::{World, session};
use crate::{Options, progress};

/// The numbers of files, each with the goal in milliseconds and its name.
const SIZES: [(usize, f64, &str); 2] = [
    (10_000, 20.0, "a command, 10,000 files not ignored"),
    (100_000, 150.0, "a command, 100,000 files not ignored"),
];

/// The number of files that an undo restores.
const UNDONE: usize = 200;

/// The age of the files. Git's index does not prove a file to be unchanged that
/// is as young as the index.
const AGE: Duration = Duration::from_secs(3_600);

#[derive(Default)]
struct Measured {
    stats: Samples,
    git: Samples,
    begin: Samples,
    end: Samples,
    both: Samples,
    /// The number of windows that covered only a part of the files, for want of
    /// time.
    partial: u32,
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let mut part = Part::new(
        "Whole commands, and undo",
        "A window opens before a shell command and ends after it. Both times the daemon looks \
         which of the files that are not ignored have changed. Here each command changes one file \
         that no session has read. `git status` is the peer: it looks at the same files, in a \
         process of its own. The floor is one `lstat` of each file. An undo takes back what a \
         command did to 200 files, while the lines of other authors stay; its floor writes 200 files \
         beside their places and renames them.",
    );
    for (nth, (count, goal, name)) in SIZES.into_iter().enumerate() {
        let count = options.pick(count / 10, count);
        let world = repository(options, count)?;
        let (_daemon, client) = world.start()?;
        let measured = commands(options, &world, &client)?;
        tell(&mut part, &measured, count, goal, name);
        witnessed(options, &mut part, (&world, &client), count)?;
        if nth == 0 {
            undos(options, &mut part, &world, &client)?;
        }
    }
    Ok(part)
}

/// Creates a workspace that is a git repository with one commit.
pub(crate) fn repository(options: &Options, count: usize) -> Result<World> {
    progress(&format!("a repository of {} files", units::count(count)));
    let world = World::new(&options.binary, count)?;
    let old = SystemTime::now() - AGE;
    for file in &world.tree.files {
        File::options().write(true).open(file)?.set_modified(old)?;
    }
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "all files"],
    ] {
        git(&world, arguments)?;
    }
    Ok(world)
}

/// Runs git in the workspace.
pub(crate) fn git(world: &World, arguments: &[&str]) -> Result<()> {
    let mut git = git_command(world, arguments);
    let done = git.status().context("git cannot be started")?;
    ensure!(done.success(), "{git:?} ended with {done}");
    Ok(())
}

/// Returns git's command in the workspace, without the user's configuration.
pub(crate) fn git_command(world: &World, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.current_dir(&world.tree.root)
        .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"])
        .args(["-c", "gc.auto=0", "--no-optional-locks"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    git
}

/// Returns the request that opens the window of a session's command.
pub(crate) fn begin(session: &SessionId) -> CommandBegin {
    CommandBegin::new(session.clone())
        .label("sed -i")
        .scope(CommandScope::Workspace)
}

fn commands(options: &Options, world: &World, client: &Client) -> Result<Measured> {
    let session = session("bench")?;
    let file = world.tree.files.last().context("a file")?;
    let rounds = options.pick(10, 40);
    let mut measured = Measured::default();
    // The first round warms up and is not counted.
    for round in 0..=rounds {
        progress(&format!("whole commands, round {round} of {rounds}"));
        let mut unused = Measured::default();
        let kept = if round == 0 {
            &mut unused
        } else {
            &mut measured
        };
        kept.stats.add(floor::stat_sweep(&world.tree.files)?);
        kept.git.time(|| git(world, &["status", "--porcelain"]))?;
        let begun = kept.begin.time(|| client.call(begin(&session)))?;
        write_in_place(file, format!("{round:0>1024}").as_bytes())?;
        let started = Instant::now();
        let ended = client.call(CommandEnd::new().command(begun.command).exit(0))?;
        let took = started.elapsed();
        kept.end.add(took);
        kept.both.add(took + kept.begin.last());
        let versions = ended.command.map(|row| row.versions);
        let is_partial = begun.partial.is_some();
        kept.partial += u32::from(is_partial);
        ensure!(
            versions == Some(1) || is_partial,
            "one file has changed, not {versions:?}"
        );
    }
    Ok(measured)
}

/// Measures the windows of commands that a witness sees.
fn witnessed(
    options: &Options,
    part: &mut Part,
    (world, client): (&World, &Client),
    count: usize,
) -> Result<()> {
    let (session, mut both) = (session("witnessed")?, Samples::default());
    let name = world.tree.names.last().context("a file")?;
    for round in 0..=options.pick(10, 40) {
        progress(&format!("witnessed commands, round {round}"));
        let started = Instant::now();
        let begun = client.call(begin(&session).witness(true))?;
        let began = started.elapsed();
        let mut command = Command::new(world.witness());
        command.arg("--ring").arg(world.ring(&begun.command));
        command.arg("--root").arg(&world.tree.root);
        command.args(["--quiet", "--", "sh", "-c"]);
        command.arg(format!("echo {round} > {name}"));
        let done = command.current_dir(&world.tree.root).status()?;
        ensure!(done.success(), "{command:?} ended with {done}");
        let started = Instant::now();
        let ended = client.call(CommandEnd::new().command(begun.command).exit(0))?;
        // The first round makes the first look.
        if round > 0 {
            both.add(began + started.elapsed());
        }
        let row = ended.command.context("the command")?;
        ensure!(row.unwitnessed.is_none(), "{:?}", row.unwitnessed);
        ensure!(
            row.versions == 1,
            "one file has changed, not {}",
            row.versions
        );
    }
    let what = format!("begin and end, witnessed, {} files", units::count(count));
    part.rows.push(Row::of(what, &both));
    part.goals.push(
        Goal::new("a witnessed command", units::duration(both.p50()))
            .beside("files", units::count(count))
            .at_most(1.0, "ms", goal::millis(both.p50())),
    );
    Ok(())
}

fn tell(part: &mut Part, measured: &Measured, count: usize, goal: f64, name: &'static str) {
    let floor = measured.stats.p50();
    let rows = [
        ("lstat of all", &measured.stats),
        ("git status", &measured.git),
        ("begin", &measured.begin),
        ("end", &measured.end),
        ("begin and end", &measured.both),
    ];
    for (what, samples) in rows {
        let row = Row::of(format!("{what}, {} files", units::count(count)), samples);
        part.rows
            .push(row.beside("lstat of all", samples.p50(), floor));
    }
    let p50 = |samples: &Samples| units::duration(samples.p50());
    part.goals.push(
        Goal::new(name, p50(&measured.both))
            .beside("`git status`", p50(&measured.git))
            .beside("lstat of all", p50(&measured.stats))
            .at_most(goal, "ms", goal::millis(measured.both.p50()))
            .at_most(0.0, "windows of a part", f64::from(measured.partial)),
    );
}

/// Measures undos of a command that changed 200 files in which the user has
/// written too.
fn undos(options: &Options, part: &mut Part, world: &World, client: &Client) -> Result<()> {
    let session = session("undone")?;
    let files = &world.tree.files[..UNDONE];
    let (mut floor, mut undo, mut redo) = Default::default();
    let rounds = options.pick(5, 20);
    for round in 0..=rounds {
        progress(&format!("undo, round {round} of {rounds}"));
        let before: Vec<String> = (0..20).map(|n| format!("{round} line {n}\n")).collect();
        write_all(files, &before.concat())?;
        let begun = client.call(begin(&session))?;
        let mut by_agent = before.clone();
        by_agent[3] = format!("{round} an agent's line\n");
        write_all(files, &by_agent.concat())?;
        client.call(CommandEnd::new().command(begun.command.clone()).exit(0))?;
        let (mut with_users, mut without_agents) = (by_agent, before);
        for text in [&mut with_users, &mut without_agents] {
            text[15] = format!("{round} a user's line\n");
        }
        write_all(files, &with_users.concat())?;
        let (mut unused_floor, mut unused_undo, mut unused_redo) = Default::default();
        let [floor, undo, redo]: [&mut Samples; 3] = match round {
            0 => [&mut unused_floor, &mut unused_undo, &mut unused_redo],
            _ => [&mut floor, &mut undo, &mut redo],
        };
        floor.time(|| write_beside(world.tree.beside(), &with_users.concat()))?;
        let undone = undo.time(|| {
            client.call(
                Undo::new()
                    .session(session.clone())
                    .command(begun.command)
                    .now(true)
                    .likely(true),
            )
        })?;
        all_hold(files, &without_agents.concat(), &undone)?;
        let redone = redo.time(|| {
            client.call(Redo {
                undo: undone.undo,
                ..Redo::default()
            })
        })?;
        all_hold(files, &with_users.concat(), &redone)?;
    }
    for (what, samples) in [
        ("write beside and rename, 200 files", &floor),
        ("undo of a command, 200 files", &undo),
        ("redo, 200 files", &redo),
    ] {
        let row = Row::of(what, samples);
        part.rows
            .push(row.beside("write and rename", samples.p50(), floor.p50()));
    }
    part.goals.push(
        Goal::new("undo of 200 files", units::duration(undo.p50()))
            .beside("write and rename", units::duration(floor.p50()))
            .at_most(
                8.0,
                "x write and rename",
                goal::times(undo.p50(), floor.p50()),
            ),
    );
    Ok(())
}

fn write_all(files: &[std::path::PathBuf], text: &str) -> Result<()> {
    for file in files {
        fs::write(file, text)?;
    }
    Ok(())
}

fn write_beside(directory: &Path, text: &str) -> Result<()> {
    for n in 0..UNDONE {
        let (new, place) = (directory.join("new"), directory.join(format!("place{n}")));
        fs::write(&new, text)?;
        fs::rename(new, place)?;
    }
    Ok(())
}

fn all_hold(files: &[std::path::PathBuf], text: &str, undone: &Undone) -> Result<()> {
    let outcomes = undone.files.iter().map(|file| file.outcome);
    let done = outcomes.filter(|outcome| *outcome == UndoOutcome::Undone);
    ensure!(
        done.count() == UNDONE,
        "not every file was undone: {undone:?}"
    );
    for file in files {
        let holds = fs::read_to_string(file)?;
        ensure!(
            holds == text,
            "{} contains\n{holds}\nand should contain\n{text}",
            file.display()
        );
    }
    Ok(())
}
