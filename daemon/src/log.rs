//! The daemon's own log.

#[cfg_attr(not(target_os = "linux"), path = "log/journal/unsupported.rs")]
mod journal;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use touchmark_proto::quoting::without_hidden;
use tracing::field::Field;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::system::open::private;

/// The environment variable with the log filter.
pub const VARIABLE: &str = "TOUCHMARK_LOG";

/// The name of the log in the state directory. Its older half has the suffix
/// `.1`.
pub const FILE: &str = "daemon.log";

/// The maximum size of one half, in bytes. Two halves stay under 10 MiB.
const HALF: u64 = 5 * 1024 * 1024 - 64 * 1024;

/// Where the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// systemd's journal.
    Journal,
    /// The terminal.
    Stderr,
    /// A file in the state directory.
    File,
}

impl Target {
    /// Returns the journal under systemd, the terminal in the foreground, and a
    /// file otherwise.
    pub fn choose(foreground: bool) -> Self {
        let journal = std::env::var_os("JOURNAL_STREAM");
        if journal.is_some_and(|stream| journal::is_stream(io::stderr(), &stream.to_string_lossy()))
        {
            Self::Journal
        } else if foreground && io::stderr().is_terminal() {
            Self::Stderr
        } else {
            Self::File
        }
    }
}

/// Starts the log of this process; a second call has no effect. While the file
/// cannot be written, lines are lost (LOSS-3).
pub fn start(target: Target, state: &Path, workspace: &Path) {
    // A filter that does not parse must not prevent the daemon's start.
    let said = std::env::var(VARIABLE).ok().filter(|said| !said.is_empty());
    let filter: Option<Targets> = said.and_then(|said| said.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let journal = match target {
        Target::Journal => journal::layer(workspace).ok(),
        Target::Stderr | Target::File => None,
    };
    let lines = || {
        tracing_subscriber::fmt::layer()
            .fmt_fields(debug_fn(field))
            .with_target(false)
    };
    let layer = match (target, journal) {
        (_, Some(journal)) => journal.boxed(),
        // The journal also receives what a service writes to stderr.
        (Target::Journal, None) => lines().with_ansi(false).with_writer(io::stderr).boxed(),
        (Target::Stderr, _) => lines().with_writer(io::stderr).boxed(),
        (Target::File, _) => {
            let file = Rotating::new(state.join(FILE), HALF);
            lines().with_ansi(false).with_writer(file).boxed()
        }
    };
    let _already_set = tracing_subscriber::registry()
        .with(layer)
        .with(filter)
        .try_init();
}

/// Writes one field of a line for people. The fields `session` and `path` are
/// left out: the message contains them already, and they exist for the journal.
///
/// A name in the value cannot begin a line or control a terminal (SEC-4).
fn field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = without_hidden(&format!("{value:?}"));
    match field.name() {
        "message" => write!(out, "{value}"),
        "session" | "path" => Ok(()),
        name => write!(out, " {name}={value}"),
    }
}

/// A log file that is renamed when it reaches a size.
#[derive(Debug)]
struct Rotating {
    path: PathBuf,
    most: u64,
    /// The open file; `None` until it could be opened.
    open: Mutex<Option<Open>>,
}

/// The file and its size in bytes.
#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = private().create(true).append(true).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }
}

impl Rotating {
    fn new(path: PathBuf, most: u64) -> Self {
        let open = Mutex::new(Open::new(&path).ok());
        Self { path, most, open }
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *open {
            Some(open) => open,
            none => none.insert(Open::new(&self.path)?),
        };
        if open.size > 0 && open.size.saturating_add(line.len() as u64) > self.most {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.path, older)?;
            *open = Open::new(&self.path)?;
        }
        open.file.write_all(line)?;
        open.size = open.size.saturating_add(line.len() as u64);
        Ok(())
    }
}

/// Writes one event to the file; tracing passes whole lines.
struct Line<'a>(&'a Rotating);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nothing can report that the log itself cannot be written.
        let _lost = self.0.append(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Rotating {
    type Writer = Line<'a>;
    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_name_cannot_write_a_line_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let log = tracing_subscriber::fmt()
            .fmt_fields(debug_fn(field))
            .with_ansi(false)
            .with_writer(Rotating::new(path.clone(), 10_000))
            .finish();
        let name = "a\n2026-01-01T00:00:00Z ERROR forged \u{1b}]0;owned\u{7}\u{202e}.txt";
        tracing::subscriber::with_default(log, || {
            tracing::warn!(cause = name, "removing {name}");
        });
        let log = std::fs::read_to_string(&path).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(r"removing a\u000a2026-01-01T00:00:00Z ERROR forged \u001b]"));
        assert!(log.trim_end().chars().all(|c| c >= ' ' && c != '\u{202e}'));
    }

    #[test]
    fn two_halves_hold_the_newest_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let log = Rotating::new(path.clone(), 100);
        for n in 0..50 {
            log.make_writer()
                .write_all(format!("line {n:03}\n").as_bytes())
                .unwrap();
        }
        let newer = std::fs::read_to_string(&path).unwrap();
        let older = std::fs::read_to_string(directory.path().join("daemon.log.1")).unwrap();
        assert!(newer.ends_with("line 049\n"));
        assert!(newer.len() <= 100 && older.len() <= 100);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
