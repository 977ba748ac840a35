//! Measures touchmark against floors taken in the same run.
//!
//! ```text
//! cargo run --release -p touchmark-bench [-- --quick] [--only WORD] [--write]
//! cargo run --release -p touchmark-bench -- scenarios [--repeat N] [--only ROW]
//! ```
//!
//! `--quick` takes under two minutes; `--only` runs what has the word in its
//! name; `--write` writes `docs/performance.md`. A wrong answer ends the run;
//! how long anything took never does. `scenarios` counts the wrong answers in
//! every row of `docs/scenarios.md` and writes them there.

mod floor;
mod latency;
mod load;
mod process;
mod samples;
mod scale;
mod scenarios;
mod table;
mod world;

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use anyhow::{Context as _, Result, bail, ensure};

use table::Table;

/// What to measure, and with what.
#[derive(Debug)]
struct Options {
    binary: PathBuf,
    quick: bool,
    write: bool,
    only: Option<String>,
}

impl Options {
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    fn wants(&self, what: &str) -> bool {
        self.only.as_ref().is_none_or(|only| what.contains(only))
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == load::EMPTY) {
        return Ok(());
    }
    if let [first, socket] = &*arguments
        && first == floor::ECHO
    {
        return floor::serve_echo(Path::new(socket));
    }
    if arguments.first().is_some_and(|first| first == "scenarios") {
        return scenarios::run(arguments.into_iter().skip(1));
    }
    let options = options(arguments)?;
    let table = measure(&options)?;
    progress("");
    print!("{}\n{}", machine(), table.text());
    if options.write {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
        fs::write(&document, page(&table, options.quick))?;
    }
    Ok(())
}

fn options(arguments: Vec<String>) -> Result<Options> {
    let (mut quick, mut write, mut only) = (false, false, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            "--only" => only = Some(arguments.next().context("--only needs a word")?),
            other => bail!("{other}? known are --quick, --write, --only WORD; scenarios"),
        }
    }
    ensure!(
        !(write && only.is_some()),
        "--write writes the whole page: not with --only"
    );
    Ok(Options {
        binary: binary()?,
        quick,
        write,
        only,
    })
}

fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::default();
    table.section("One request at a time", latency::rows(options)?);
    if options.wants("clients") {
        table.section("Many clients", load::clients(options)?);
    }
    if options.wants("storm") {
        table.section("A storm of writes", load::storm(options)?);
    }
    if options.wants("process") {
        table.section("One process", load::processes(options)?);
    }
    if ["scale", "start", "idle"]
        .iter()
        .any(|part| options.wants(part))
    {
        let rows = scale::rows(options)?;
        table.section("As the workspace grows", rows.growth);
        table.section("From start to the first answer", rows.start);
        table.section("Memory", rows.memory);
        table.section("While nobody asks", rows.idle);
    }
    Ok(table)
}

/// The command of the same profile as this program, as the sources are now.
fn binary() -> Result<PathBuf> {
    let own = env::current_exe()?;
    let directory = own.parent().context("this program is nowhere")?;
    let binary = directory.join("touchmark");
    if let Some(cargo) = env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "-p", "touchmark-cli"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        if directory.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        }
        ensure!(build.status()?.success(), "touchmark cannot be built");
    }
    ensure!(
        binary.exists(),
        "{} is not there: build touchmark-cli in this profile",
        binary.display()
    );
    Ok(binary)
}

/// Says on a terminal what is going on.
fn progress(what: &str) {
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        let _ = write!(terminal, "\r\x1b[K{what}");
        let _ = terminal.flush();
    }
}

/// What it was measured on, and what it could be compared with.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| {
            Some(
                line.strip_prefix("model name")?
                    .split_once(": ")?
                    .1
                    .to_owned(),
            )
        })
        .unwrap_or_else(|| env::consts::ARCH.into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("?");
    let profile = if cfg!(debug_assertions) {
        "; UNOPTIMISED BUILD"
    } else {
        ""
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "touchmark {}{profile}; {processor}, {cores} cores, Linux {}; load {load} at the end",
        env!("CARGO_PKG_VERSION"),
        read("/proc/sys/kernel/osrelease").trim(),
    );
    let watchman = Command::new("watchman").arg("--version").output();
    let _ = match watchman {
        Ok(_) => writeln!(text, "watchman: installed, not compared yet"),
        Err(_) => writeln!(text, "watchman: not installed"),
    };
    text
}

fn page(table: &Table, quick: bool) -> String {
    let flag = if quick {
        " -- --quick --write"
    } else {
        " -- --write"
    };
    format!(
        "# Performance\n\nWritten by `cargo run --release -p touchmark-bench{flag}`; run it to \
         measure your machine. Every row was measured in one run, a round of each in turn, beside \
         the floor it is compared with: what the machine itself takes for the least that would \
         do. What counts are the multiples, not the times. The goals are those the project set \
         itself.\n\n{}\n{}",
        machine().replace('\n', "  \n"),
        table.markdown(),
    )
}
