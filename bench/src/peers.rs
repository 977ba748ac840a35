//! Other programs with similar functions, if they are installed.

pub(crate) mod chokidar;
pub(crate) mod watchman;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::table::Row;
use crate::tree::Tree;

use watchman::Watched;

/// The peers that are installed.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) watchman: Option<PathBuf>,
    pub(crate) chokidar: Option<chokidar::Program>,
    /// One line per peer: its version, or that it is not installed.
    pub(crate) said: Vec<String>,
}

impl Peers {
    /// Finds the installed peers. Packages are downloaded into `target`,
    /// cargo's target directory.
    pub(crate) fn find(target: &Path) -> Self {
        let version = first_line("watchman", &["--version"]);
        let node = first_line("node", &["--version"]);
        let chokidar = node.as_ref().and_then(|_| chokidar::Program::find(target));
        let said = vec![
            match &version {
                Some(version) => format!("watchman {version}, its JSON over a kept connection"),
                None => "watchman: not installed".into(),
            },
            match (&chokidar, node) {
                (Some(_), Some(node)) => format!(
                    "{} on Node.js {node}, a watcher for each file, `awaitWriteFinish` of 100 ms",
                    chokidar::PACKAGE
                ),
                _ => "chokidar: not installed".into(),
            },
            git(),
        ];
        Self {
            watchman: version.map(|_| PathBuf::from("watchman")),
            chokidar,
            said,
        }
    }

    /// Starts a separate watchman that watches a new tree of this number of
    /// files. Returns `None` if watchman is not installed.
    pub(crate) fn watched(&self, count: usize) -> Result<Option<(Watched, Tree)>> {
        let Some(program) = &self.watchman else {
            return Ok(None);
        };
        let tree = Tree::new(count)?;
        Ok(Some((Watched::new(program, &tree)?, tree)))
    }

    /// Returns a row which reports that watchman is not installed; `None` if it
    /// is.
    pub(crate) fn absent_watchman(&self) -> Option<Row> {
        let absent = self.watchman.is_none();
        absent.then(|| Row::value("watchman", "not installed"))
    }

    /// Returns a row which reports that chokidar is not installed; `None` if it
    /// is.
    pub(crate) fn absent_chokidar(&self) -> Option<Row> {
        let absent = self.chokidar.is_none();
        absent.then(|| Row::value("chokidar", "not installed"))
    }
}

/// Returns the line about git's file system monitor, which not every git has on
/// Linux.
fn git() -> String {
    let Some(version) = first_line("git", &["--version"]) else {
        return "git's own monitor: git is not installed".into();
    };
    let built = Command::new("git")
        .args(["version", "--build-options"])
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).contains("fsmonitor--daemon"));
    if built.unwrap_or(false) {
        format!("git's own monitor: in {version}, not compared")
    } else {
        format!("git's own monitor: {version} has none on this system")
    }
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}
