//! Measures what a witness costs the command that it sees (ATTR-3).

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::commands::{git, git_command, repository};
use crate::goal::{self, Goal};
use crate::part::Part;
use crate::process::Memory;
use crate::samples::Samples;
use crate::table::Row;
use crate::units;
use crate::world::{World, scratch};
use crate::{Options, progress};

/// The argument that makes this program open a file for writing, again and again.
pub(crate) const OPENS: &str = "opens";

/// The number of times.
const OPENED: u32 = 2_000;

/// The number of files that a checkout changes.
const CHANGED: usize = 7_000;

/// The number of small files in C that are compiled.
const COMPILED: usize = 30;

/// The same command without a witness and with one.
#[derive(Default)]
struct Pair {
    plain: Samples,
    witnessed: Samples,
}

impl Pair {
    fn rows(&self, what: &str, part: &mut Part) {
        let floor = self.plain.p50();
        for (how, samples) in [("", &self.plain), (", witnessed", &self.witnessed)] {
            let row = Row::of(format!("{what}{how}"), samples);
            part.rows.push(row.beside("plain", samples.p50(), floor));
        }
    }

    /// Returns how much longer the witnessed command takes.
    fn more(&self) -> Duration {
        { self.witnessed.p50() }.saturating_sub(self.plain.p50())
    }

    fn times(&self) -> Option<f64> {
        goal::times(self.witnessed.p50(), self.plain.p50())
    }

    fn goal(&self, what: &'static str, limit: f64) -> Goal {
        let p50 = |samples: &Samples| units::duration(samples.p50());
        Goal::new(what, p50(&self.witnessed))
            .beside("plain", p50(&self.plain))
            .at_most(limit, "x plain", self.times())
    }
}

/// Opens a file for writing, and prints how long one open took, in nanoseconds.
pub(crate) fn open_often(file: &Path) -> Result<()> {
    let began = Instant::now();
    for _ in 0..OPENED {
        OpenOptions::new().write(true).open(file)?;
    }
    println!("{}", (began.elapsed() / OPENED).as_nanos());
    Ok(())
}

pub(crate) fn part(options: &Options) -> Result<Part> {
    let mut part = Part::new(
        "Witnessed commands",
        "Each command runs as it is and below a witness, in turn. Opens for writing are those of one \
         file on tmpfs. A checkout writes 7,000 small files and does little else; where another workspace is \
         witnessed, its calls are seen, and nothing is recorded. Memory is private \
         memory of the larger of the two processes that witness.",
    );
    opens(options, &mut part)?;
    let mut start = Pair::default();
    let world = World::new(&options.binary, 1)?;
    for round in 0..=options.pick(20, 200) {
        let mut unused = Pair::default();
        let kept = if round == 0 { &mut unused } else { &mut start };
        both(&world, kept, |witness| witness.arg("true"))?;
    }
    start.rows("start of `true`", &mut part);
    part.goals.push(
        Goal::new("start below a witness", units::duration(start.more()))
            .beside("`true`", units::duration(start.plain.p50()))
            .at_most(5.0, "ms more", goal::millis(start.more())),
    );
    checkouts(options, &mut part)?;
    compiles(options, &mut part)?;
    reads(options, start.more(), &mut part)?;
    memory(&world, &mut part)?;
    Ok(part)
}

/// Returns the command that runs what follows below a witness, in this directory.
fn below(world: &World, ring: &Path, root: &Path) -> Command {
    let mut command = Command::new(world.witness());
    command.arg("--ring").arg(ring).arg("--root").arg(root);
    command.args(["--quiet", "--"]).current_dir(root);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Runs a command without a witness, by `env`, and then with one.
fn both(world: &World, pair: &mut Pair, fill: impl Fn(&mut Command) -> &mut Command) -> Result<()> {
    let root = &world.tree.root;
    let mut plain = Command::new("env");
    plain.current_dir(root).stdin(Stdio::null());
    let places = tempfile::tempdir()?;
    let mut witnessed = below(world, &places.path().join("ring"), root);
    for (samples, command) in [
        (&mut pair.plain, &mut plain),
        (&mut pair.witnessed, &mut witnessed),
    ] {
        let command = fill(command).stdout(Stdio::null());
        let done = samples.time(|| command.status())?;
        ensure!(done.success(), "{command:?} ended with {done}");
    }
    Ok(())
}

fn opens(options: &Options, part: &mut Part) -> Result<()> {
    let directory = scratch()?;
    let world = World::new(&options.binary, 1)?;
    let (root, own) = (directory.path().join("root"), std::env::current_exe()?);
    fs::create_dir(&root)?;
    let file = root.join("file");
    fs::write(&file, "")?;
    let mut pair = Pair::default();
    for round in 0..options.pick(5, 20) {
        progress(&format!("opens for writing, round {round}"));
        let ring = directory.path().join(format!("ring{round}"));
        let mut witnessed = below(&world, &ring, &root);
        for (samples, command) in [
            (&mut pair.plain, &mut Command::new("env")),
            (&mut pair.witnessed, &mut witnessed),
        ] {
            let output = command.arg(&own).arg(OPENS).arg(&file).output()?;
            let text = String::from_utf8(output.stdout)?;
            let nanos = text.trim().parse().context("how long an open took")?;
            samples.add(Duration::from_nanos(nanos));
        }
    }
    pair.rows("an open for writing", part);
    part.goals.push(
        Goal::new(
            "an open for writing, witnessed",
            units::duration(pair.more()),
        )
        .beside("plain", units::duration(pair.plain.p50()))
        .at_most(25.0, "us more", goal::micros(pair.more())),
    );
    Ok(())
}

fn checkouts(options: &Options, part: &mut Part) -> Result<()> {
    let count = options.pick(CHANGED / 10, CHANGED);
    let world = repository(options, count)?;
    git(&world, &["branch", "one"])?;
    git(&world, &["checkout", "--quiet", "-b", "two"])?;
    for file in &world.tree.files {
        fs::write(file, fs::read_to_string(file)?.replace('1', "2"))?;
    }
    git(&world, &["commit", "--quiet", "--all", "--message", "two"])?;
    let mut pair = Pair::default();
    // What the calls cost if none of them concerns the workspace.
    let mut elsewhere = Samples::default();
    let root = tempfile::tempdir()?;
    let (own, other) = (Some(world.tree.root.as_path()), Some(root.path()));
    for round in 0..=options.pick(2, 8) {
        progress(&format!("checkouts, round {round}"));
        let mut unused = (Pair::default(), Samples::default());
        let (kept, elsewhere) = match round {
            0 => (&mut unused.0, &mut unused.1),
            _ => (&mut pair, &mut elsewhere),
        };
        // Each in both directions.
        for (watched, branch) in [
            (None, "one"),
            (own, "two"),
            (other, "one"),
            (None, "two"),
            (own, "one"),
            (other, "two"),
        ] {
            let plain = git_command(&world, &["checkout", "--quiet", branch]);
            let places = tempfile::tempdir()?;
            let samples = match watched {
                None => &mut kept.plain,
                it if it == own => &mut kept.witnessed,
                _ => &mut *elsewhere,
            };
            let mut command = match watched {
                None => plain,
                Some(watched) => {
                    let ring = places.path().join("ring");
                    let mut witnessed = below(&world, &ring, watched);
                    witnessed.arg("git").args(plain.get_args());
                    witnessed.current_dir(&world.tree.root);
                    witnessed.env("GIT_CONFIG_GLOBAL", "/dev/null");
                    witnessed
                }
            };
            let done = samples.time(|| command.status())?;
            ensure!(done.success(), "{command:?} ended with {done}");
        }
    }
    let what = format!("git checkout of {} files", units::count(count));
    pair.rows(&what, part);
    let row = Row::of(format!("{what}, another workspace witnessed"), &elsewhere);
    part.rows
        .push(row.beside("plain", elsewhere.p50(), pair.plain.p50()));
    part.goals.push(pair.goal("git checkout, witnessed", 1.3));
    Ok(())
}

/// Compiles small files in C, if there is a compiler.
fn compiles(options: &Options, part: &mut Part) -> Result<()> {
    let world = World::new(&options.binary, 1)?;
    for n in 0..COMPILED {
        let text = format!("#include <stdio.h>\nint f{n}(int a) {{ return printf(\"%d\", a); }}\n");
        fs::write(world.tree.root.join(format!("f{n}.c")), text)?;
    }
    let has_compiler = Command::new("cc")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !has_compiler.is_ok_and(|done| done.success()) {
        part.rows.push(Row::value("compiling C", "there is no cc"));
        return Ok(());
    }
    let mut pair = Pair::default();
    for round in 0..=options.pick(2, 10) {
        progress(&format!("compiling, round {round}"));
        let mut unused = Pair::default();
        let kept = if round == 0 { &mut unused } else { &mut pair };
        both(&world, kept, |command| {
            command.args(["sh", "-c", "for f in *.c; do cc -O1 -c $f || exit; done"])
        })?;
    }
    pair.rows(&format!("compiling {COMPILED} files in C"), part);
    part.goals.push(pair.goal("compiling C, witnessed", 1.03));
    Ok(())
}

/// Measures a command that only reads. `start` is what each witnessed one costs.
fn reads(options: &Options, start: Duration, part: &mut Part) -> Result<()> {
    let world = World::new(&options.binary, 2_000)?;
    let mut pair = Pair::default();
    for round in 0..=options.pick(5, 30) {
        let mut unused = Pair::default();
        let kept = if round == 0 { &mut unused } else { &mut pair };
        both(&world, kept, |command| {
            command.args(["grep", "-rc", "", "."])
        })?;
    }
    pair.rows("grep of 2,000 files", part);
    let is = { pair.witnessed.p50() }.saturating_sub(start);
    part.goals.push(
        Goal::new("reading, witnessed, without the start", units::duration(is))
            .beside("plain", units::duration(pair.plain.p50()))
            .at_most(1.03, "x plain", goal::times(is, pair.plain.p50())),
    );
    Ok(())
}

/// Measures the two processes of a command that has written some files.
fn memory(world: &World, part: &mut Part) -> Result<()> {
    let places = tempfile::tempdir()?;
    let mut command = below(world, &places.path().join("ring"), &world.tree.root);
    let script = "for i in $(seq 500); do echo $i > w$i; echo $i > w$i; done; echo; read line";
    let command = command.args(["sh", "-c", script]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut written = [0];
    let mut output = child.stdout.take().context("an output")?;
    std::io::Read::read_exact(&mut output, &mut written)?;
    let mut most = 0;
    // The launcher, then the guardian, then the supervisor.
    let mut pid = child.id();
    for _ in 0..2 {
        pid = child_of(pid)?;
        most = most.max(Memory::of(pid)?.private);
    }
    drop(child.stdin.take());
    child.wait()?;
    let is = units::megabytes(most);
    part.rows
        .push(Row::value("memory of a witnessing process", &is));
    part.goals
        .push(Goal::new("memory of a witnessing process", is).at_most(
            3.0,
            "MB private",
            most as f64 / 1e6,
        ));
    Ok(())
}

/// Returns the first child of a process.
fn child_of(pid: u32) -> Result<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let first = children.split_whitespace().next().context("a child")?;
    Ok(first.parse()?)
}
