//! Starts git. A repository may come from an untrusted source, so no program
//! that its configuration names is run and nothing is fetched (SEC-7).

pub(crate) mod files;
mod objects;

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) use objects::{Commit, Object, Objects};

/// Settings that prevent git from running programs which a repository
/// configures.
const OFF: [&str; 2] = ["core.fsmonitor=false", "core.hooksPath=/dev/null"];

/// Environment variables that select a repository other than that of the
/// directory. Git sets them for its hooks and all processes that these start.
const OTHERS: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];

/// Returns a git command that runs in a directory, for the directory's
/// repository. It takes no lock that it does not need, starts no pager, asks
/// for no password, and takes paths literally. Its input is empty.
///
/// Callers still have to switch off what a single subcommand runs, such as
/// `--no-ext-diff` and `--no-textconv`.
pub fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(directory);
    for setting in OFF {
        git.args(["-c", setting]);
    }
    git.args(["--no-optional-locks", "--no-pager", "--literal-pathspecs"])
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    for name in OTHERS {
        git.env_remove(name);
    }
    git
}
