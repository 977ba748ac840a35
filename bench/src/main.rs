//! Measures touchmark, and compares it with floors and peers measured in the
//! same run.
//!
//! ```text
//! cargo run --profile dist -p touchmark-bench [-- --quick] [--write]
//! [--only PART] [--binary FILE]
//! cargo run --profile dist -p touchmark-bench -- scenarios [--repeat N]
//! [--only ROW]
//! ```
//!
//! - `--quick` takes less than two minutes.
//! - `--write` writes `docs/performance.md`, its drawings, and the rows of it
//!   that the README quotes.
//! - `--only` runs one part.
//! - `--binary` measures another `touchmark` than the one that was built with
//!   this program.
//! - `scenarios` counts the wrong answers in every row of `docs/scenarios.md`,
//!   and writes them to that file.
//!
//! A wrong answer fails the run. A slow one does not.

mod clients;
mod commands;
mod decisions;
mod floor;
mod goal;
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
mod sizes;
mod storm;
mod table;
mod tree;
mod units;
mod world;

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, io};

use anyhow::{Context as _, Result, bail, ensure};

use page::Report;
use part::Part;
use peers::Peers;

/// The options of the command line, and the peers that are installed.
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

const PARTS: &[Named] = &[
    ("requests", |options| Ok(vec![requests::part(options)?])),
    ("clients", |options| Ok(vec![clients::part(options)?])),
    ("storm", |options| Ok(vec![storm::part(options)?])),
    ("sizes", sizes::parts),
    ("decisions", |options| Ok(vec![decisions::part(options)?])),
    ("commands", |options| Ok(vec![commands::part(options)?])),
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
    match arguments.first().map(String::as_str) {
        Some(processes::EMPTY) => Ok(()),
        Some("scenarios") => scenarios::run(arguments.into_iter().skip(1)),
        _ => measure(&options(arguments)?),
    }
}

fn options(arguments: Vec<String>) -> Result<Options> {
    let (mut quick, mut write, mut only, mut other) = (false, false, None, None);
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => quick = true,
            "--write" => write = true,
            "--only" => only = Some(arguments.next().context("--only needs a part")?),
            "--binary" => other = Some(arguments.next().context("--binary needs a file")?),
            other => {
                bail!("{other}? known are --quick, --write, --only PART, --binary FILE; scenarios")
            }
        }
    }
    ensure!(
        !(write && only.is_some()),
        "--write writes the whole page: not with --only"
    );
    if let Some(only) = &only {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        ensure!(
            names.contains(&only.as_str()),
            "{only}? the parts are {}",
            names.join(", ")
        );
    }
    let own = env::current_exe()?;
    let target = own.ancestors().nth(2).context("this program is nowhere")?;
    Ok(Options {
        binary: match other {
            Some(other) => PathBuf::from(other).canonicalize()?,
            None => binary()?,
        },
        quick,
        write,
        only,
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
