//! Which worktrees a repository has, from git's own files. The repository may
//! come from an untrusted source: no program of its is run, nothing is written
//! into it, and a directory counts as its worktree only if the two name each
//! other.

use std::fs;
use std::path::{Path, PathBuf};

use touchmark_proto::{Places, native};

use crate::git::files::{Configured, branch, line, pointed};
use crate::git::{Git, Limits, Objects, WorkTree};
use crate::system::open::check_owner;
use crate::tools::GIT;

/// The maximum number of worktrees that are examined.
const MOST: usize = 256;

/// The file in a worktree's part of the repository that names the worktree.
const GITDIR: &str = "gitdir";

/// The repository of a workspace.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The workspace's worktree.
    worktree: WorkTree,
    /// The workspace's path below the top of its worktree; empty if it is the
    /// top.
    below: PathBuf,
}

/// One worktree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// The name by which git finds what belongs to this worktree alone, such as
    /// `worktrees/x`.
    pub(super) name: String,
    /// The directory in which it has what the workspace has: its top, or the
    /// directory below it that corresponds to the workspace.
    pub(super) root: PathBuf,
    top: PathBuf,
    /// Git's own directory of the worktree.
    pub(super) own: PathBuf,
}

impl Repository {
    /// Returns the repository whose worktree contains `root`, a canonical path.
    /// `None` if there is none, or if it is not trusted (SEC-6).
    pub(super) fn of(root: &Path, places: &Places) -> Option<Self> {
        let worktree = WorkTree::of(root, places)?;
        Some(Self {
            below: root.strip_prefix(&worktree.top).ok()?.to_owned(),
            worktree,
        })
    }

    /// Returns git, to be run in the directory of a worktree.
    pub(super) fn git(&self, tree: &Tree) -> Option<Git> {
        let git = self.at(tree).git(&tree.root);
        git.inspect_err(|error| tracing::debug!("git: {error}"))
            .ok()
    }

    /// Returns a process that prints objects. Paths are relative to the
    /// workspace, which is at `root`.
    pub(super) fn objects(&self, root: &Path) -> Option<Objects> {
        Objects::open(&self.worktree, root, Limits::default())
    }

    fn at(&self, tree: &Tree) -> WorkTree {
        self.worktree.beside(&tree.top, &tree.own)
    }

    /// Returns the workspace's own worktree.
    pub(super) fn own(&self, root: &Path) -> Tree {
        Tree {
            name: String::new(),
            root: root.to_owned(),
            top: self.worktree.top.clone(),
            own: self.worktree.own.clone(),
        }
    }

    /// Returns the other worktrees, the main one first. Nothing outside the
    /// repository's own directory is looked at, so some may not exist.
    pub(super) fn others(&self) -> Vec<Tree> {
        let mut found: Vec<Tree> = self.main().into_iter().collect();
        let mut linked: Vec<Tree> = fs::read_dir(self.worktree.common.join("worktrees"))
            .into_iter()
            .flatten()
            .take(MOST)
            .filter_map(|entry| self.linked(&entry.ok()?.path()))
            .collect();
        linked.sort_by(|one, other| one.top.cmp(&other.top));
        found.extend(linked);
        found.retain(|tree| tree.own != self.worktree.own);
        found
    }

    /// Returns the worktree that has the repository in it; `None` for a bare
    /// repository.
    fn main(&self) -> Option<Tree> {
        let common = &self.worktree.common;
        let is_dot_git = common.file_name().is_some_and(|name| name == GIT);
        let top = common.parent().filter(|_| is_dot_git)?;
        let is_bare = ["config", "config.worktree"]
            .iter()
            .map(|name| Configured::read_file(&common.join(name)))
            .any(|configured| configured.value("core", "bare") == Some("true"));
        (!is_bare).then(|| self.tree("main-worktree".into(), top.to_owned(), common.clone()))
    }

    fn linked(&self, own: &Path) -> Option<Tree> {
        let name = own.file_name()?.to_str()?;
        // Git chooses such names itself. Another one could be an expression.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        if !name.bytes().all(plain) || name.contains("..") {
            return None;
        }
        let mark = own.join(line(&own.join(GITDIR))?);
        if mark.file_name()? != GIT {
            return None;
        }
        let top = mark.parent()?.to_owned();
        Some(self.tree(format!("worktrees/{name}"), top, own.to_owned()))
    }

    fn tree(&self, name: String, top: PathBuf, own: PathBuf) -> Tree {
        let root = match self.below.as_os_str().is_empty() {
            true => top.clone(),
            false => top.join(&self.below),
        };
        Tree {
            name,
            root,
            top,
            own,
        }
    }
}

impl Tree {
    /// Returns whether the worktree's directory exists, names the repository
    /// too, and belongs to this user. A repository can name any directory as
    /// its worktree. This looks at the directory, so it may take long.
    pub(super) fn is_there(&self) -> bool {
        let is_own = |path: &Path| {
            let found = path.symlink_metadata();
            found.is_ok_and(|found| check_owner(&found).is_ok())
        };
        is_own(&self.top)
            && is_own(&self.top.join(GIT))
            && pointed(&self.top).is_some_and(|own| own == self.own)
    }

    /// Returns the name of the branch that is checked out; `None` if there is
    /// none, or if it cannot be found out.
    pub(super) fn branch(&self) -> Option<String> {
        let branch = branch(&line(&self.own.join("HEAD"))?)?;
        // What git writes into `HEAD` where references are in another format.
        (branch != ".invalid").then_some(branch)
    }

    /// Returns the name of the worktree's last commit.
    pub(super) fn head(&self) -> String {
        match self.name.is_empty() {
            true => "HEAD".into(),
            false => format!("{}/HEAD", self.name),
        }
    }

    /// Returns the worktree's path for people.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&native::bytes(&self.top)).into_owned()
    }
}
