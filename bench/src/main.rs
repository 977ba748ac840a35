//! Measures touchmark, and compares it with floors and peers measured in the
//! same run.
//!
//! `cargo run --profile dist -p touchmark-bench -- --help` lists the options.
//!
//! A wrong answer fails the run. A slow one does not.

mod clients;
mod commands;
mod decisions;
mod floor;
mod goal;
mod history;
mod machine;
mod page;
mod part;
mod peers;
mod plot;
mod process;
mod processes;
mod queue;
mod requests;
mod samples;
mod scenarios;
mod secrets;
mod sizes;
mod storm;
mod table;
mod tree;
mod units;
mod witness;
mod world;

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, io};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};

use page::Report;
use part::Part;
use peers::Peers;

/// Measures touchmark, and compares it with floors and peers measured in the
/// same run.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    scenarios: Option<Mode>,
    /// Measure smaller sizes in fewer rounds, in less than two minutes.
    #[arg(long)]
    quick: bool,
    /// Write docs/performance.md, its drawings, and the rows of it that the
    /// README quotes. Takes ten minutes.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Run one part only.
    #[arg(long, value_name = "PART", value_parser = PARTS.map(|(name, _)| name))]
    only: Option<String>,
    /// Measure another `touchmark` than the one of this program's profile.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Count the wrong answers in every row of tests/scenarios.md, and write
    /// them to that file.
    Scenarios(scenarios::Arguments),
}

/// What to measure, and the peers that are installed.
#[derive(Debug)]
struct Options {
    binary: PathBuf,
    quick: bool,
    write: bool,
    only: Option<String>,
    peers: Peers,
}

impl Options {
    fn pick<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// A part of the bench, with its name for `--only`.
type Named = (&'static str, fn(&Options) -> Result<Vec<Part>>);

const PARTS: [Named; 10] = [
    ("requests", |options| Ok(vec![requests::part(options)?])),
    ("clients", |options| Ok(vec![clients::part(options)?])),
    ("storm", |options| Ok(vec![storm::part(options)?])),
    ("sizes", sizes::parts),
    ("decisions", |options| Ok(vec![decisions::part(options)?])),
    ("commands", |options| Ok(vec![commands::part(options)?])),
    ("witness", |options| Ok(vec![witness::part(options)?])),
    ("history", |options| Ok(vec![history::part(options)?])),
    ("secrets", |options| Ok(vec![secrets::part(options)?])),
    ("processes", |options| Ok(vec![processes::part(options)?])),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, socket, watched @ ..] = &*arguments
        && first == floor::ECHO
    {
        let watched: Vec<PathBuf> = watched.iter().map(PathBuf::from).collect();
        return floor::serve_echo(Path::new(socket), &watched);
    }
    if let [first, file] = &*arguments
        && first == witness::OPENS
    {
        return witness::open_often(Path::new(file));
    }
    if arguments
        .first()
        .is_some_and(|first| first == processes::EMPTY)
    {
        return Ok(());
    }
    let arguments = Arguments::parse();
    match arguments.scenarios {
        Some(Mode::Scenarios(arguments)) => scenarios::run(&arguments),
        None => measure(&options(arguments)?),
    }
}

fn options(arguments: Arguments) -> Result<Options> {
    let own = env::current_exe()?;
    let target = own.ancestors().nth(2).context("this program is nowhere")?;
    Ok(Options {
        binary: match arguments.binary {
            Some(other) => other.canonicalize()?,
            None => binary()?,
        },
        quick: arguments.quick,
        write: arguments.write,
        only: arguments.only,
        peers: Peers::find(target),
    })
}

fn measure(options: &Options) -> Result<()> {
    let started = Instant::now();
    let mut facts = vec![machine::line(), machine::file_systems()];
    facts.extend(options.peers.said.iter().cloned());
    let mut parts = Vec::new();
    for (name, run) in PARTS {
        if options.only.as_ref().is_none_or(|only| only == name) {
            parts.extend(run(options).with_context(|| format!("while measuring {name}"))?);
        }
    }
    progress("");
    facts.push(format!("measured in {} s", started.elapsed().as_secs()));
    let report = Report {
        facts,
        parts,
        quick: options.quick,
    };
    print!("{}", report.text());
    if options.write {
        report.write()?;
    }
    Ok(())
}

/// Builds and returns the `touchmark` binary of this program's profile.
fn binary() -> Result<PathBuf> {
    let own = env::current_exe()?;
    let directory = own.parent().context("this program is nowhere")?;
    let binary = directory.join("touchmark");
    if let Some(cargo) = env::var_os("CARGO") {
        let profile = match directory.file_name() {
            // cargo's own profile for development has a directory by another name.
            Some(name) if name != "debug" => name,
            _ => OsStr::new("dev"),
        };
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "-p", "touchmark-cli", "--profile"])
            .arg(profile)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        ensure!(build.status()?.success(), "touchmark cannot be built");
    }
    ensure!(
        binary.exists(),
        "{} is not there: build touchmark-cli in this profile",
        binary.display()
    );
    Ok(binary)
}

/// Prints progress to stderr: on a terminal in place, else as lines.
fn progress(what: &str) {
    let mut errors = io::stderr();
    let _ = if errors.is_terminal() {
        write!(errors, "\r\x1b[K{what}").and_then(|()| errors.flush())
    } else if what.is_empty() {
        Ok(())
    } else {
        writeln!(errors, "{what}")
    };
}
