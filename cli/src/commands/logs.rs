//! `touchmark logs`: shows the daemon's log.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use crate::context::Context;
use crate::daemon::LOG_FILE;
use crate::output::{self, Failure, Outcome};
use crate::service::units;
use crate::system::files::is_same;
use crate::text::{directory, escaped};

/// How often a followed log is read.
const PACE: Duration = Duration::from_millis(200);

/// The longest line that is printed, in characters.
const LONGEST: usize = 4_000;

/// Show the daemon's log.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    let workspace = context.workspace()?;
    let newer = workspace.places.state.join(LOG_FILE);
    let mut older = newer.clone().into_os_string();
    older.push(".1");
    let older = Log::open(Path::new(&older))?;
    let had_older = older.is_some();
    let mut log = Log::open(&newer)?;
    older.into_iter().try_for_each(|mut log| log.print())?;
    log.iter_mut().try_for_each(Log::print)?;
    if workspace.places.service.exists() {
        return journal(&workspace.places.key, options.follow);
    }
    if !options.follow {
        return match had_older || log.is_some() {
            true => Ok(()),
            false => Err(Failure::No(format!(
                "no log in {}; a service logs to the journal, a foreground daemon to its terminal",
                directory(&workspace.places.state)
            ))),
        };
    }
    loop {
        std::thread::sleep(PACE);
        log.iter_mut().try_for_each(Log::print)?;
        let is_replaced = log.as_ref().is_none_or(|log| log.replaced(&newer));
        if is_replaced && let Some(new) = Log::open(&newer)? {
            // Lines that were written between the last read and the rename.
            log.iter_mut().try_for_each(Log::print)?;
            log.insert(new).print()?;
        }
    }
}

/// Prints the log of a systemd service. The log file only has lines of earlier
/// daemons.
fn journal(key: &str, follow: bool) -> Outcome {
    let unit = units::service(key);
    let mut command = Command::new("journalctl");
    command.args(["--user", "--quiet", "--output=short-iso", "--unit", &unit]);
    if follow {
        command.args(["--follow", "--lines=all"]);
    } else {
        command.arg("--no-pager");
    }
    let ended = command
        .status()
        .with_context(|| format!("journalctl, which has the log of {unit}"))?;
    match ended.success() {
        true => Ok(()),
        false => Err(Failure::No(format!("journalctl has ended: {ended}"))),
    }
}

/// An open log, read up to some line.
struct Log {
    path: PathBuf,
    lines: BufReader<File>,
    /// The beginning of a line that is not complete yet.
    begun: Vec<u8>,
}

impl Log {
    /// Opens a log; `None` if there is none.
    fn open(path: &Path) -> Outcome<Option<Self>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self {
                path: path.to_owned(),
                lines: BufReader::new(file),
                begun: Vec::new(),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(anyhow::Error::new(error)
                .context(format!("{}", path.display()))
                .into()),
        }
    }

    /// Prints the complete lines that have not been printed.
    fn print(&mut self) -> Outcome {
        loop {
            let count = self
                .lines
                .read_until(b'\n', &mut self.begun)
                .with_context(|| format!("{}", self.path.display()))?;
            if count == 0 || self.begun.last() != Some(&b'\n') {
                return Ok(());
            }
            let line = std::mem::take(&mut self.begun);
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            output::line(&escaped(&String::from_utf8_lossy(line), LONGEST))?;
        }
    }

    /// Returns whether the name now belongs to another file.
    fn replaced(&self, path: &Path) -> bool {
        match (self.lines.get_ref().metadata(), std::fs::metadata(path)) {
            (Ok(ours), Ok(there)) => !is_same(&ours, &there),
            _ => false,
        }
    }
}
