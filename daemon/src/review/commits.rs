//! Reads what the user has committed, which counts as kept (REV-2).
//!
//! One git process answers for all files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use touchmark_engine::history::{Step, Weave};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::{FileMode, Millis, Places, RelPath, native};

use crate::git::{Limits, Object, Objects, WorkTree};

/// The maximum number of commits that are searched for those of agents.
const MOST_COMMITS: usize = 1_000;

/// The last commit of a workspace, without what agents have committed.
#[derive(Debug, Default)]
pub(super) struct Commits {
    git: Option<Objects>,
    /// The ids of agents' commits, the oldest first, each with its parent's id.
    by_agents: Vec<(String, String)>,
    /// The indexes in `by_agents` of the commits that changed a file, by its
    /// path.
    touched: HashMap<Vec<u8>, Vec<usize>>,
    deletions: Deletions,
}

/// Which files the user's commits have deleted, as far back as was needed.
#[derive(Debug, Default)]
struct Deletions {
    /// Where commits are made, and the workspace's path.
    tree: Option<(WorkTree, PathBuf)>,
    /// When agents' commands ran, in seconds.
    windows: Vec<(Millis, Millis)>,
    /// The first commit that was not looked at; `None` if all were.
    next: Option<String>,
    /// The number of commits that were looked at.
    looked: usize,
    /// The time of the newest commit that deleted each file, in seconds.
    found: HashMap<Vec<u8>, Millis>,
}

impl Commits {
    /// Reads the repository that contains `root`. A commit counts as an agent's
    /// if it was made while a command of an agent ran.
    pub(super) fn look(root: &Path, places: &Places, commands: &[CommandRow]) -> Self {
        let Some(tree) = WorkTree::of(root, places) else {
            return Self::default();
        };
        let Some(mut git) = Objects::open(&tree, root, Limits::default()) else {
            return Self::default();
        };
        if !matches!(git.object(b"HEAD"), Some(Object::Whole(..))) {
            return Self::default();
        }
        let windows: Vec<(Millis, Millis)> = commands
            .iter()
            // The times of commits are in whole seconds.
            .map(|row| {
                let end = row.ended_at.map_or(Millis::MAX, |end| end / 1_000);
                (row.begun_at / 1_000, end)
            })
            .collect();
        let by_agents = by_agents(&mut git, &windows);
        let touched = match by_agents.is_empty() {
            true => Some(HashMap::new()),
            false => changed(&tree, root, &by_agents, &[]),
        };
        // An agent's commit must not count as the user's (REV-2).
        let Some(touched) = touched else {
            return Self::default();
        };
        Self {
            git: Some(git),
            by_agents,
            touched,
            deletions: Deletions {
                tree: Some((tree, root.to_owned())),
                windows,
                next: Some("HEAD".to_owned()),
                ..Deletions::default()
            },
        }
    }

    /// Returns the mode of a file in the last commit, as git records it: `None`
    /// if the commit does not contain the file, or if a commit of an agent
    /// changed the file.
    pub(super) fn mode(&self, path: &RelPath) -> Option<FileMode> {
        if self.git.is_none() || self.touched.contains_key(path.as_bytes()) {
            return None;
        }
        let name = native::name(path.as_bytes());
        let (tree, root) = self.deletions.tree.as_ref()?;
        let git = tree.git(root).ok()?;
        let git = git.args(["ls-tree", "-z", "HEAD", "--"]).arg(&*name);
        let listed = git.printed()?;
        let mode = listed.split(|byte| *byte == b' ').next()?;
        str::from_utf8(mode).ok()?.parse().ok()
    }

    /// Returns whether the user has committed the deletion of a file since
    /// `since`.
    pub(super) fn deleted(&mut self, path: &RelPath, since: Millis) -> bool {
        let Some(git) = &mut self.git else {
            return false;
        };
        let since = since / 1_000;
        self.deletions.look_back(git, since);
        let found = self.deletions.found.get(path.as_bytes());
        found.is_some_and(|time| *time >= since)
    }

    /// Returns the user's committed content of a file. `NotKept` if there is no
    /// commit, or if the content is too large to compare.
    pub(super) fn committed(&mut self, path: &RelPath) -> Step {
        let Some(git) = &mut self.git else {
            return Step::NotKept;
        };
        let head = git.file("HEAD", path);
        let Some(touched) = self.touched.get(path.as_bytes()) else {
            return head;
        };
        if head == Step::NotKept {
            return head;
        }
        // The agents' commits are taken out, as an undo would do it (UNDO-1).
        let mut steps: Vec<Step> = Vec::new();
        let mut is_agents = Vec::new();
        for at in touched {
            let (commit, parent) = &self.by_agents[*at];
            steps.extend([git.file(parent, path), git.file(commit, path)]);
            is_agents.extend([false, true]);
        }
        steps.push(head);
        let without = Weave::new(&steps).without(|at| is_agents.get(at) == Some(&true));
        without
            .bytes
            .map_or(Step::Absent, |bytes| Step::Held(Arc::from(bytes)))
    }
}

impl Deletions {
    /// Looks at the commits that were made since `since`, in seconds.
    fn look_back(&mut self, git: &mut Objects, since: Millis) {
        let mut commits = Vec::new();
        let mut times = Vec::new();
        while let (Some(name), true) = (&self.next, self.looked < MOST_COMMITS) {
            let Some(commit) = git.commit(name) else {
                self.next = None;
                break;
            };
            if commit.time < since {
                break;
            }
            self.looked += 1;
            self.next = Some(commit.parent.clone());
            if !is_during(&self.windows, commit.time) {
                commits.push((commit.id, commit.parent));
                times.push(commit.time);
            }
        }
        let Some((tree, root)) = self.tree.as_ref().filter(|_| !commits.is_empty()) else {
            return;
        };
        let deleted = changed(tree, root, &commits, &["--diff-filter=D"]);
        for (path, at) in deleted.unwrap_or_default() {
            let newest = at.into_iter().map(|at| times[at]).max();
            let known = self.found.entry(path).or_default();
            *known = newest.unwrap_or_default().max(*known);
        }
    }
}

/// Returns whether a command ran at this time.
fn is_during(windows: &[(Millis, Millis)], time: Millis) -> bool {
    let mut windows = windows.iter();
    windows.any(|(begin, end)| (*begin..=*end).contains(&time))
}

/// Returns the commits of agents, the oldest first, each with its parent.
fn by_agents(git: &mut Objects, windows: &[(Millis, Millis)]) -> Vec<(String, String)> {
    let Some(oldest) = windows.iter().map(|(begin, _)| *begin).min() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut next = "HEAD".to_owned();
    for _ in 0..MOST_COMMITS {
        let Some(commit) = git.commit(&next) else {
            break;
        };
        if commit.time < oldest {
            break;
        }
        if is_during(windows, commit.time) {
            found.push((commit.id, commit.parent.clone()));
        }
        next = commit.parent;
    }
    found.reverse();
    found
}

/// Returns the indexes of the commits that changed each file, each commit
/// compared with the given parent; `None` if git fails. `only` selects changes,
/// as options of git's.
fn changed(
    tree: &WorkTree,
    root: &Path,
    commits: &[(String, String)],
    only: &[&str],
) -> Option<HashMap<Vec<u8>, Vec<usize>>> {
    let asked: String = commits
        .iter()
        .map(|(commit, parent)| format!("{commit} {parent}\n"))
        .collect();
    let git = tree
        .git(root)
        .ok()?
        .args(["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"])
        .args(["--relative", "--no-ext-diff"])
        .args(only.iter().copied());
    let printed = git.input(asked).printed()?;
    let mut touched: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    let mut at = None;
    let mut fields = printed.split(|byte| *byte == 0);
    while let Some(field) = fields.next() {
        if field.starts_with(b":") {
            if let (Some(path), Some(at)) = (fields.next(), at) {
                touched.entry(path.to_vec()).or_default().push(at);
            }
            continue;
        }
        let id = field.trim_ascii();
        let of = commits
            .iter()
            .position(|(commit, _)| commit.as_bytes() == id);
        at = of.or(at);
    }
    Some(touched)
}
