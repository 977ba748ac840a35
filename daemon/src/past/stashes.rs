//! What is stashed, and what was until lately: a `stash pop` drops the stash
//! right after it has written its content, and `--autostash` never lists its own.

use std::collections::HashMap;
use std::path::Path;

use super::blobs::{Nanos, written};
use crate::git::reflog::moves_in;

/// The most stashes that are remembered, the newest.
const MOST: usize = 16;

/// The most files of stashes that are remembered.
const MOST_TAKEN: usize = 10_000;

/// The most bytes of the list of stashes that are read, the newest.
const MOST_BYTES: u64 = 64 << 10;

/// How far apart the times of directories are at most that one command of git
/// makes together. The least that a person or a script does in between takes
/// longer: a commit, a stash and its pop.
const MADE: Nanos = 20_000_000;

/// The newest stashes of a repository.
#[derive(Debug, Default)]
pub(super) struct Stashes {
    /// The ids of their commits, the oldest first.
    ids: Vec<String>,
    /// When a stash was made or dropped last.
    changed: Option<Nanos>,
    /// The version in which a stash has taken a file away, by the stash and the
    /// path.
    taken: HashMap<(String, Vec<u8>), u64>,
}

impl Stashes {
    /// Notes the stashes that a repository has now. Those that it had before
    /// are remembered.
    pub(super) fn note(&mut self, common: &Path) {
        let time = |place: &str| {
            let found = common.join(place).symlink_metadata().ok()?;
            Some(written(&found))
        };
        // Git rewrites this list with each stash. With the last one it removes
        // the list and the reference, from these directories. They are changed
        // when the repository is made, too, with the second of each pair.
        let removed = [("refs", "refs/tags"), ("logs/refs", "logs")];
        let removed = removed.iter().filter_map(|(place, twin)| {
            let changed = time(place)?;
            let is_made = time(twin).is_some_and(|made| (made - changed).abs() < MADE);
            (!is_made).then_some(changed)
        });
        let changed = removed.chain(time("logs/refs/stash")).max();
        if changed == self.changed {
            return;
        }
        self.changed = changed;
        for found in moves_in(&common.join("logs/refs/stash"), MOST_BYTES) {
            self.remember(found.id);
        }
    }

    /// Remembers the commit of a stash.
    pub(super) fn remember(&mut self, id: String) {
        if !self.ids.contains(&id) {
            self.ids.push(id);
        }
        let surplus = self.ids.len().saturating_sub(MOST);
        self.ids.drain(..surplus);
    }

    /// Returns whether a stash may have taken a file away in this version. It
    /// does so once: the next time it was another process.
    pub(super) fn takes(&mut self, stash: &str, path: &[u8], version: u64) -> bool {
        if self.taken.len() >= MOST_TAKEN {
            self.taken.clear();
        }
        let taken = self.taken.entry((stash.to_owned(), path.to_owned()));
        *taken.or_insert(version) == version
    }

    /// Returns whether a stash has taken a file's change away.
    pub(super) fn has_taken(&self, stash: &str, path: &[u8]) -> bool {
        self.taken
            .contains_key(&(stash.to_owned(), path.to_owned()))
    }

    /// Returns the ids of the stashes' commits, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &String> {
        self.ids.iter().rev()
    }

    /// Returns when a stash was made or dropped last.
    pub(super) fn changed(&self) -> Option<Nanos> {
        self.changed
    }
}
