//! Reads what the user has committed, which counts as kept (REV-2).
//!
//! One git process answers for all files.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use touchmark_engine::history::{Step, Undos, Weave};
use touchmark_proto::commands::CommandRow;
use touchmark_proto::{Millis, Places, RelPath};

use super::known::Known;
use super::made::{MOST_COMMITS, MOST_MOVES, Made, made};
use super::times::Times;
use crate::git::index::GitIndex;
use crate::git::reflog;
use crate::git::{Limits, Objects, WorkTree};

/// The last commit of a workspace, without what agents have committed.
#[derive(Debug, Default)]
pub(super) struct Commits {
    pub(super) git: Option<Objects>,
    /// The id of the last commit.
    pub(super) head: String,
    pub(super) known: Arc<Mutex<Known>>,
    /// The commits of agents, and the user's commits that agents have made
    /// again, the oldest first. Also those that are not in the last commit any
    /// more, since they were made again by an amend, a rebase or the like.
    pub(super) made: Vec<Made>,
    /// The indexes in `made` of the commits that changed a file, by its path.
    /// At least one of them is an agent's.
    pub(super) touched: Arc<Touched>,
    /// The index, from when it was needed first; `None` if it was not understood.
    pub(super) index: OnceCell<Option<GitIndex>>,
    pub(super) deletions: Deletions,
}

/// The indexes of the commits that changed a file, by its path.
pub(super) type Touched = HashMap<Vec<u8>, Vec<usize>>;

/// Which files the user's commits have deleted, as far back as was needed.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    /// Where commits are made, and the workspace's path.
    pub(super) tree: Option<(WorkTree, PathBuf)>,
    times: Times,
    /// The first commit that was not looked at; `None` if all were.
    next: Option<String>,
    /// The number of commits that were looked at.
    looked: usize,
    /// The last millisecond in which the newest commit that deleted each file may
    /// have been made.
    found: HashMap<Vec<u8>, Millis>,
}

impl Commits {
    /// Reads the repository that contains `root`. A commit counts as an agent's
    /// if it was made while a command of an agent ran.
    pub(super) fn look(
        root: &Path,
        places: &Places,
        commands: &[CommandRow],
        known: Arc<Mutex<Known>>,
    ) -> Self {
        let Some(tree) = WorkTree::of(root, places) else {
            return Self::default();
        };
        let Some(mut git) = Objects::open(&tree, root, Limits::default()) else {
            return Self::default();
        };
        let Some(head) = git.commit("HEAD") else {
            return Self::default();
        };
        // Git's log of HEAD has the commits that were made again since.
        let moves = reflog::moves(&tree);
        let moves = &moves[moves.len().saturating_sub(MOST_MOVES)..];
        let times = Times::of(&tree, moves, commands);
        let shared = Arc::clone(&known);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let id = head.id.clone();
        let is_same = known.head == id;
        known.head.clone_from(&id);
        let made = made(&mut git, &mut known.commits, head, moves, &times);
        let touched = match known
            .touched
            .take()
            .filter(|(of, _)| is_same && *of == made)
        {
            Some((_, touched)) => touched,
            None => {
                known.states.clear();
                let pairs: Vec<(String, Option<String>)> = made
                    .iter()
                    .map(|made| (made.id.clone(), made.base.clone()))
                    .collect();
                let touched = match made.is_empty() {
                    true => Some(HashMap::new()),
                    false => changed(&tree, root, &pairs, &[]),
                };
                // An agent's commit must not count as the user's (REV-2).
                let Some(mut touched) = touched else {
                    return Self::default();
                };
                touched.retain(|_, at| at.iter().any(|at| made[*at].is_agents));
                Arc::new(touched)
            }
        };
        known.touched = Some((made.clone(), Arc::clone(&touched)));
        drop(known);
        Self {
            git: Some(git),
            head: id,
            known: shared,
            made,
            touched,
            index: OnceCell::new(),
            deletions: Deletions {
                tree: Some((tree, root.to_owned())),
                times,
                next: Some("HEAD".to_owned()),
                ..Deletions::default()
            },
        }
    }

    /// Returns whether the user has committed the deletion of a file since
    /// `since`.
    pub(super) fn deleted(&mut self, path: &RelPath, since: Millis) -> bool {
        let Some(git) = &mut self.git else {
            return false;
        };
        self.deletions.look_back(git, since);
        let found = self.deletions.found.get(path.as_bytes());
        found.is_some_and(|time| *time >= since)
    }

    /// Returns the user's committed content of a file that had these names, the
    /// newest first.
    pub(super) fn committed_of(&mut self, names: &[RelPath]) -> Step {
        let mut found = names.iter().map(|name| self.committed(name));
        let found = found.find(|step| *step != Step::Absent);
        found.unwrap_or(Step::Absent)
    }

    /// Returns the user's committed content of a file. `NotKept` if there is no
    /// commit, or if the content is too large to compare.
    pub(super) fn committed(&mut self, path: &RelPath) -> Step {
        let Some(git) = &mut self.git else {
            return Step::NotKept;
        };
        let head = git.file(&self.head, path);
        let Some(touched) = self.touched.get(path.as_bytes()) else {
            return head;
        };
        if head == Step::NotKept {
            return head;
        }
        // The agents' commits are taken out, as an undo would do it (UNDO-1), but
        // the user has not seen that a line is gone if the next one in its place
        // is gone, too. A line is of the commit that was the first to add it.
        let mut steps: Vec<Step> = Vec::new();
        let mut is_agents = Vec::new();
        let mut carried = Vec::new();
        for at in touched {
            let made = &self.made[*at];
            let bases = std::iter::once(made.base.as_ref());
            for base in bases.chain(made.merged.iter().map(Some)) {
                carried.push(steps.len());
                steps.push(base.map_or(Step::Absent, |base| git.file(base, path)));
                is_agents.push(false);
            }
            if made.is_again || !made.merged.is_empty() || !made.is_agents {
                carried.push(steps.len());
            }
            steps.push(git.file(&made.id, path));
            is_agents.push(made.is_agents);
        }
        carried.push(steps.len());
        let is_gone = head == Step::Absent;
        steps.push(head);
        let undos = Undos {
            carried,
            ..Undos::default()
        };
        let weave = Weave::with_undos(&steps, &undos);
        let without = weave.without_any(|at| is_agents.get(at) == Some(&true));
        // An agent's first commit may have files that the user had: what the
        // user has committed of them is not known.
        let first = touched.first().map(|at| &self.made[*at]);
        let is_known = !first.is_some_and(|made| made.is_agents && made.base.is_none());
        match without.bytes {
            Some(bytes) => Step::Held(Arc::from(bytes)),
            None if is_known || is_gone => Step::Absent,
            None => Step::NotKept,
        }
    }
}

impl Deletions {
    /// Looks at the commits that were made since `since`.
    fn look_back(&mut self, git: &mut Objects, since: Millis) {
        let mut commits = Vec::new();
        let mut times = Vec::new();
        while let (Some(name), true) = (&self.next, self.looked < MOST_COMMITS) {
            let Some(commit) = git.commit(name) else {
                self.next = None;
                break;
            };
            let (_, time) = self.times.made(&commit);
            if time < since {
                break;
            }
            self.looked += 1;
            self.next.clone_from(&commit.parent);
            if !self.times.is_agents(&commit) {
                commits.push((commit.id, commit.parent));
                times.push(time);
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

/// Returns the indexes of the commits that changed each file, each commit
/// compared with the given parent, or with nothing; `None` if git fails. `only`
/// selects changes, as options of git's.
fn changed(
    tree: &WorkTree,
    root: &Path,
    commits: &[(String, Option<String>)],
    only: &[&str],
) -> Option<HashMap<Vec<u8>, Vec<usize>>> {
    let asked: String = commits
        .iter()
        .map(|(commit, parent)| match parent {
            Some(parent) => format!("{commit} {parent}\n"),
            None => format!("{commit}\n"),
        })
        .collect();
    let git = tree
        .git(root)
        .ok()?
        .args(["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames"])
        .args(["--root", "--relative", "--no-ext-diff"])
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
