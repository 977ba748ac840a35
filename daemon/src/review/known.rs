//! What the user has committed of many files at once. It is kept while the
//! commits are the same.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use touchmark_engine::history::Step;
use touchmark_proto::{FileMode, Hash, RelPath, native};

use super::commits::{Commits, Touched};
use super::made::Made;
use crate::git::{Commit, name_of, step};

/// How many files git is asked about in one run.
const LISTED: usize = 200;

/// What is asked about a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    /// The names that it had, the newest first.
    pub(super) names: Vec<RelPath>,
    /// Whether its mode is asked for.
    pub(super) has_mode: bool,
}

/// The hash of the user's committed content of a file: `None` if it is not
/// known, `Some(None)` if the commit does not have the file.
pub(super) type CommittedHash = Option<Option<Hash>>;

/// What the user has committed of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct CommittedState {
    pub(super) hash: CommittedHash,
    /// [`Commits::mode`](Commits::mode), if it was asked for.
    pub(super) mode: Option<FileMode>,
}

fn hash_of(committed: &Step) -> CommittedHash {
    match committed {
        Step::NotKept => None,
        Step::Absent => Some(None),
        Step::Held(bytes) => Some(Some(Hash::of(bytes))),
    }
}

/// What the last look at the commits found out, for the next one.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The commits that were read, by their ids.
    pub(super) commits: HashMap<String, Commit>,
    /// The last commit.
    pub(super) head: String,
    /// [`Commits::made`], and [`Commits::touched`] by them.
    pub(super) touched: Option<(Vec<Made>, Arc<Touched>)>,
    /// The states of files while these are the same.
    pub(super) states: HashMap<Asked, CommittedState>,
}

impl Commits {
    /// Returns what the user has committed of files.
    pub(super) fn states(
        &mut self,
        files: Vec<(RelPath, Asked)>,
    ) -> BTreeMap<RelPath, CommittedState> {
        let shared = Arc::clone(&self.known);
        let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
        // A later look may have found other commits.
        let is_same = known.head == self.head
            && matches!(&known.touched, Some((made, _)) if *made == self.made);
        let mut unshared = HashMap::new();
        let states = match is_same {
            true => &mut known.states,
            false => &mut unshared,
        };
        let asked = files.iter().map(|(_, asked)| asked);
        let unknown = asked.filter(|asked| !states.contains_key(asked));
        states.extend(self.read(&unknown.collect::<Vec<_>>()));
        let found = files.into_iter().map(|(path, asked)| {
            let state = states.get(&asked).cloned();
            (path, state.unwrap_or_default())
        });
        let found = found.collect();
        // What git did not answer may be known the next time.
        if self.git.as_ref().is_none_or(|git| git.is_broken) {
            states.clear();
        }
        found
    }

    /// Reads what the user has committed of files.
    fn read(&mut self, files: &[&Asked]) -> Vec<(Asked, CommittedState)> {
        let with_mode = files.iter().filter(|asked| asked.has_mode);
        let newest = with_mode.filter_map(|asked| asked.names.first());
        let modes = self.modes(&newest.collect::<Vec<_>>());
        // The last commit has most files under their newest name, and no commit
        // of an agent has them.
        let touched = Arc::clone(&self.touched);
        let (plain, mut rest): (Vec<&Asked>, Vec<&Asked>) = files.iter().partition(|asked| {
            let newest = asked.names.first();
            newest.is_some_and(|name| !touched.contains_key(name.as_bytes()))
        });
        let mut hashes: Vec<(&Asked, CommittedHash)> = Vec::new();
        if let Some(git) = &mut self.git {
            let head = |asked: &&Asked| name_of(&self.head, &asked.names[0]);
            let names: Vec<Vec<u8>> = plain.iter().map(head).collect();
            git.each(&names, |at, object| match step(object) {
                Step::Absent if plain[at].names.len() > 1 => rest.push(plain[at]),
                found => hashes.push((plain[at], hash_of(&found))),
            });
        }
        for asked in rest {
            hashes.push((asked, hash_of(&self.committed_of(&asked.names))));
        }
        let states = hashes.into_iter().map(|(asked, hash)| {
            let newest = asked.names.first().filter(|_| asked.has_mode);
            let mode = newest.and_then(|name| modes.get(name).copied());
            (asked.clone(), CommittedState { hash, mode })
        });
        states.collect()
    }

    /// Returns the mode of a file in the last commit, as git records it: `None`
    /// if the commit does not contain the file, or if a commit of an agent
    /// changed the file.
    pub(super) fn mode(&self, path: &RelPath) -> Option<FileMode> {
        self.modes(&[path]).remove(path)
    }

    /// As [`mode`](Self::mode), for several files.
    fn modes(&self, paths: &[&RelPath]) -> HashMap<RelPath, FileMode> {
        let mut found = HashMap::new();
        let mut paths = paths.to_vec();
        paths.retain(|path| !self.touched.contains_key(path.as_bytes()));
        let Some((tree, root)) = self.deletions.tree.as_ref().filter(|_| self.git.is_some()) else {
            return found;
        };
        for some in paths.chunks(LISTED) {
            let Ok(mut git) = tree.git(root) else {
                break;
            };
            git = git.args(["ls-tree", "-z", &self.head, "--"]);
            for path in some {
                git = git.arg(&*native::name(path.as_bytes()));
            }
            let listed = git.printed().unwrap_or_default();
            for entry in listed.split(|byte| *byte == 0) {
                let mode = entry.split(|byte| *byte == b' ').next();
                let mode = mode.and_then(|mode| str::from_utf8(mode).ok()?.parse().ok());
                let name = entry.splitn(2, |byte| *byte == b'\t').nth(1);
                if let (Some(mode), Some(Ok(name))) = (mode, name.map(RelPath::new)) {
                    found.insert(name, mode);
                }
            }
        }
        found
    }
}
