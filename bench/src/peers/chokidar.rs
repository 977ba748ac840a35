//! chokidar, set up as in the tracker that touchmark's answers are compared
//! with: one watcher per file, which reports a change once the file's size has
//! been the same for 100 ms.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::{Context as _, Result, bail};
use tempfile::NamedTempFile;

use crate::world::PATIENCE;

/// The npm package that is downloaded.
pub(crate) const PACKAGE: &str = "chokidar@4.0.3";

/// The script that runs chokidar.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/chokidar.mjs");

/// The directory of the downloaded package.
#[derive(Debug)]
pub(crate) struct Program {
    packages: PathBuf,
}

/// A running watcher of some files. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    process: Child,
    /// The process exits when this is closed.
    _stdin: ChildStdin,
    lines: Receiver<String>,
    _list: NamedTempFile,
}

impl Program {
    /// Downloads the package with npm, unless it is there. Returns `None` if
    /// that fails.
    pub(crate) fn find(target: &Path) -> Option<Self> {
        let packages = target.join("tools/bench-chokidar");
        let stamp = packages.join("fetched");
        if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == PACKAGE) {
            return Some(Self { packages });
        }
        fs::create_dir_all(&packages).ok()?;
        let done = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--silent", "--prefix"])
            .arg(&packages)
            .arg(PACKAGE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .ok()?;
        if !done.success() {
            return None;
        }
        fs::write(&stamp, PACKAGE).ok()?;
        Some(Self { packages })
    }

    /// Starts to watch files. Returns when all of them are watched.
    pub(crate) fn watch(&self, files: &[PathBuf]) -> Result<Watcher> {
        let mut list = NamedTempFile::new()?;
        for file in files {
            writeln!(list, "{}", file.display())?;
        }
        list.flush()?;
        let mut process = Command::new("node")
            .arg(PROGRAM)
            .arg(&self.packages)
            .arg(list.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("node cannot be started")?;
        let stdin = process.stdin.take().context("node has an input")?;
        let stdout = process.stdout.take().context("node has an output")?;
        let (told, lines) = channel();
        // The thread ends with the process.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    break;
                }
            }
        });
        let watcher = Watcher {
            process,
            _stdin: stdin,
            lines,
            _list: list,
        };
        match &*watcher.next()? {
            "ready" => Ok(watcher),
            line => bail!("chokidar: {line}"),
        }
    }
}

impl Watcher {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the path of the next file that chokidar reports as changed.
    pub(crate) fn next(&self) -> Result<String> {
        let line = self.lines.recv_timeout(PATIENCE);
        line.context("chokidar says nothing")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
