//! Starts git. No other code does: `tests/tests/architecture.rs` tests that.
//!
//! A repository may come from an untrusted source. So git runs none of the
//! programs that it names, and fetches nothing (SEC-7). This does not depend on
//! a list of settings: git reads neither the repository's configuration nor
//! its attributes and hooks. [`neutral`] replaces them.
//!
//! - [`call`]: one run of git, with its limits.
//! - [`objects`]: a process that prints objects.
//! - [`index`]: reads the index, without git.
//! - [`files`]: the small files of a repository.

pub(crate) mod call;
pub(crate) mod files;
pub(crate) mod index;
mod neutral;
mod objects;
mod program;
pub(crate) mod reflog;
pub(crate) mod waiting;

use std::io;
use std::path::{Path, PathBuf};

use touchmark_proto::trust::Trust;
use touchmark_proto::{Places, native};

pub use call::Git;
#[cfg(any(test, fuzzing))]
pub(crate) use objects::parsed;
pub(crate) use objects::{Commit, name_of, step};
pub use objects::{Limits, Object, Objects};

use crate::system::open::trust;
use crate::tools::GIT;
use files::{common_directory, pointed};
use index::GitIndex;

/// The latest time of a commit that counts, in seconds: the year 9999. A
/// repository may say any number.
pub(crate) const LATEST: u64 = 253_402_300_799;

/// A work tree of a repository that is trusted (SEC-6).
#[derive(Clone, Debug)]
pub struct WorkTree {
    /// Its top directory, as a canonical path.
    pub top: PathBuf,
    /// The directory of the repository that belongs to this work tree alone.
    pub own: PathBuf,
    /// The directory that it shares with other work trees.
    pub common: PathBuf,
    /// The directory in which the state of the workspace is stored.
    state: PathBuf,
}

impl WorkTree {
    /// Returns the work tree that contains a workspace, a canonical path. `None`
    /// if there is none, or if its repository is not trusted.
    pub fn of(workspace: &Path, places: &Places) -> Option<Self> {
        let (top, own, common) = found(workspace, &trust(&places.trusted))?;
        let state = places.state.clone();
        Some(Self {
            top,
            own,
            common,
            state,
        })
    }

    /// Returns the work tree with this top directory, a canonical path. `None`
    /// if there is none, or if its repository is not trusted.
    pub(crate) fn at(top: &Path, places: &Places) -> Option<Self> {
        let (own, common) = directories(top, &trust(&places.trusted))?;
        Some(Self {
            top: top.to_owned(),
            own,
            common,
            state: places.state.clone(),
        })
    }

    /// Returns the names of the files that git's index has, from `top` on.
    ///
    /// # Errors
    /// Those of the file system, and `InvalidData` if the index is not
    /// understood.
    pub fn tracked(&self) -> io::Result<Vec<PathBuf>> {
        let index = GitIndex::read(&self.own.join("index"))?;
        let names = index.names().map(native::name);
        Ok(names.map(|name| PathBuf::from(name.into_owned())).collect())
    }

    /// Returns another work tree of the same repository.
    pub(crate) fn beside(&self, top: &Path, own: &Path) -> Self {
        Self {
            top: top.to_owned(),
            own: own.to_owned(),
            ..self.clone()
        }
    }

    /// Returns git, to be run in a directory of this work tree.
    ///
    /// # Errors
    /// `NotFound` if there is no git, and errors of the state directory.
    pub fn git(&self, directory: &Path) -> io::Result<Git> {
        let neutral = neutral::Directory::of(&self.common, &self.state)?;
        let (git, path) = program::find(&self.top, &self.common)?;
        let mut git = Git::new(&git, directory, neutral.empty_tree);
        git.set("PATH", &path)
            .set("GIT_DIR", &self.own)
            .set("GIT_COMMON_DIR", &neutral.path)
            .set("GIT_WORK_TREE", &self.top);
        Ok(git)
    }

    /// Returns git like [`WorkTree::git`], for commands that record who made
    /// something: with the user's own configuration, and with the name and
    /// address that the repository's configuration gives the user.
    ///
    /// # Errors
    /// Those of [`WorkTree::git`].
    pub fn git_as_user(&self, directory: &Path) -> io::Result<Git> {
        let mut git = self.git(directory)?;
        git.as_user();
        let config = self.common.join("config");
        for (key, field) in [("user.name", "NAME"), ("user.email", "EMAIL")] {
            let ask = self.git(directory)?;
            let ask = ask.args(["config", "--no-includes", "-z", "--get", "--file"]);
            let Some(value) = ask.arg(&config).args([key]).printed() else {
                continue;
            };
            let value = native::name(value.strip_suffix(b"\0").unwrap_or(&value)).into_owned();
            for role in ["AUTHOR", "COMMITTER"] {
                let variable = format!("GIT_{role}_{field}");
                if std::env::var_os(&variable).is_none() {
                    git.set(&variable, &value);
                }
            }
        }
        Ok(git)
    }
}

/// Returns the top directory of the work tree that contains a canonical path,
/// and the two directories of its repository, as canonical paths: its own, and
/// the shared one.
pub(crate) fn found(inside: &Path, trust: &Trust) -> Option<(PathBuf, PathBuf, PathBuf)> {
    let marked = |top: &&Path| {
        let mark = top.join(GIT).symlink_metadata();
        mark.is_ok_and(|mark| trust.check(top, &mark).is_ok())
    };
    let top = inside.ancestors().find(marked)?;
    let (own, common) = directories(top, trust)?;
    Some((top.to_owned(), own, common))
}

/// Returns the two directories of the repository with this top directory.
fn directories(top: &Path, trust: &Trust) -> Option<(PathBuf, PathBuf)> {
    let mark = top.join(GIT).symlink_metadata().ok()?;
    trust.check(top, &mark).ok()?;
    let own = pointed(top)?;
    let common = common_directory(&own).canonicalize().ok()?;
    for directory in [&own, &common] {
        let found = directory.metadata().ok()?;
        trust.check(directory.parent()?, &found).ok()?;
    }
    Some((own, common))
}
