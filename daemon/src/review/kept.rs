//! Stores which lines of agents' changes the user has kept, which changes the
//! user has viewed, and which files have nothing left to review.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use touchmark_engine::history::LineName;
use touchmark_proto::review::ReviewHunk;
use touchmark_proto::{Error, Hash, RelPath};

use super::known::Known;
use crate::context::not_stored;
use crate::system::open::replace_private;

/// A line as it is stored: the number of the fact that added or removed it, the
/// number of the fact that first contained it, and its index among that fact's
/// lines.
pub(super) type Named = (u64, u64, usize);

/// Returns the name of a change of a whole file. No line has it, since facts
/// are counted from 1.
pub(super) fn whole(n: u64) -> Named {
    (n, 0, 0)
}

/// The changes that the user has kept, and the cached queues.
#[derive(Debug)]
pub(crate) struct Kept {
    file: PathBuf,
    durable: bool,
    state: Mutex<KeptState>,
    /// What is known of the commits.
    pub(super) known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct KeptState {
    /// The lines that were kept, by file.
    lines: BTreeMap<RelPath, BTreeSet<Named>>,
    /// The ids of the changes that were viewed, by file.
    viewed: BTreeMap<RelPath, BTreeSet<String>>,
    /// Files of which nothing was left in the queue, each with the state in
    /// which that was so.
    done: BTreeMap<RelPath, Moment>,
    /// The queue of each file, as it was last computed.
    #[serde(skip)]
    seen: HashMap<RelPath, Seen>,
    /// Whether `done` has changes that are not stored yet.
    #[serde(skip)]
    changed: bool,
}

/// The state that a file's queue is computed from. If it is the same, so is the
/// queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    /// The number of the newest fact about the file.
    pub(super) newest: u64,
    /// What the user has committed of the file: its hash, `absent`, or
    /// `nothing`.
    pub(super) committed: String,
}

/// The queue of a file, with what it was computed from.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) moment: Moment,
    /// The hash of the file's content at that time; `None` for no file.
    pub(super) now: Option<Hash>,
    /// How many lines of the file were kept at that time.
    pub(super) kept: usize,
    pub(super) hunks: Vec<ReviewHunk>,
}

impl Kept {
    /// Opens the stored state of the workspace whose state directory is
    /// `state`. If it cannot be read, it is empty, so everything is shown for
    /// review again.
    pub(crate) fn open(state: &Path, durable: bool) -> Self {
        let file = state.join("review.json");
        let read = || serde_json::from_slice(&fs::read(&file).ok()?).ok();
        Self {
            state: Mutex::new(read().unwrap_or_default()),
            file,
            durable,
            known: Arc::default(),
        }
    }

    /// Returns the kept lines of a file. `place` maps the number of a fact to
    /// the index of its version in the file's history.
    pub(super) fn of(
        &self,
        path: &RelPath,
        place: impl Fn(u64) -> Option<usize>,
    ) -> BTreeSet<LineName> {
        let state = self.state();
        let own = state.lines.get(path).into_iter().flatten();
        let lines = own.filter(|name| **name != whole(name.0));
        lines
            .filter_map(|(by, of, at)| {
                Some(LineName {
                    by: place(*by)?,
                    of: place(*of)?,
                    place: *at,
                })
            })
            .collect()
    }

    /// Returns whether the change of the whole file by the version with this
    /// number was kept.
    pub(super) fn has_whole(&self, path: &RelPath, n: u64) -> bool {
        let state = self.state();
        let own = state.lines.get(path);
        own.is_some_and(|own| own.contains(&whole(n)))
    }

    pub(super) fn add(&self, path: &RelPath, names: impl Iterator<Item = Named>) {
        let mut state = self.state();
        state.lines.entry(path.clone()).or_default().extend(names);
    }

    /// Returns how many lines of a file were kept.
    pub(super) fn count(&self, path: &RelPath) -> usize {
        self.state().lines.get(path).map_or(0, BTreeSet::len)
    }

    /// Returns whether a change was viewed.
    pub(super) fn is_viewed(&self, path: &RelPath, id: &str) -> bool {
        let state = self.state();
        state.viewed.get(path).is_some_and(|ids| ids.contains(id))
    }

    /// Sets or removes the mark of a change. Returns whether that changed
    /// anything.
    pub(super) fn set_viewed(&self, path: &RelPath, id: &str, viewed: bool) -> bool {
        let mut state = self.state();
        let ids = state.viewed.entry(path.clone()).or_default();
        match viewed {
            true => ids.insert(id.to_owned()),
            false => ids.remove(id),
        }
    }

    /// Removes the marks of changes that are no longer in a file's queue.
    pub(super) fn retain_viewed<'a>(
        &self,
        path: &RelPath,
        queued: impl Iterator<Item = &'a String>,
    ) {
        let mut state = self.state();
        let Some(ids) = state.viewed.get_mut(path) else {
            return;
        };
        let queued: BTreeSet<&String> = queued.collect();
        let before = ids.len();
        ids.retain(|id| queued.contains(id));
        let (is_changed, is_empty) = (ids.len() < before, ids.is_empty());
        if is_empty {
            state.viewed.remove(path);
        }
        state.changed |= is_changed;
    }

    /// Returns whether nothing of the file was left in the queue in the state
    /// `moment`.
    pub(super) fn is_done(&self, path: &RelPath, moment: &Moment) -> bool {
        self.state().done.get(path) == Some(moment)
    }

    /// Returns whether nothing of the file was left in the queue after the fact
    /// `newest`, whatever is committed.
    pub(super) fn is_done_at(&self, path: &RelPath, newest: u64) -> bool {
        let state = self.state();
        let done = state.done.get(path);
        done.is_some_and(|moment| moment.newest == newest)
    }

    /// Records that nothing of the file is left in the queue.
    pub(super) fn set_done(&self, path: &RelPath, moment: Moment) {
        let mut state = self.state();
        state.seen.remove(path);
        state.viewed.remove(path);
        state.done.insert(path.clone(), moment);
        state.changed = true;
    }

    /// Records that something of these files may be in the queue again.
    pub(crate) fn set_open<'a>(&self, paths: impl Iterator<Item = &'a RelPath>) {
        for path in paths {
            let mut state = self.state();
            state.changed |= state.done.remove(path).is_some();
        }
        self.write_changed();
    }

    /// Returns the queue of a file as it was last computed.
    pub(super) fn seen(&self, path: &RelPath) -> Option<Seen> {
        self.state().seen.get(path).cloned()
    }

    /// Returns whether a queue of the file was computed.
    pub(super) fn has_seen(&self, path: &RelPath) -> bool {
        self.state().seen.contains_key(path)
    }

    pub(super) fn set_seen(&self, path: &RelPath, seen: Seen) {
        self.state().seen.insert(path.clone(), seen);
    }

    /// Discards all computed queues. Called after the log, or the names in it,
    /// were replaced.
    pub(crate) fn reckon_anew(&self) {
        let mut state = self.state();
        state.seen.clear();
        state.changed |= !state.done.is_empty();
        state.done.clear();
    }

    /// Stores the changes that computing the queues has made. A failure is only
    /// logged, since they can be computed again.
    pub(super) fn write_changed(&self) {
        if self.state().changed
            && let Err(error) = self.write()
        {
            tracing::debug!("{error}");
        }
    }

    /// Stores the kept lines and the reviewed files.
    ///
    /// # Errors
    /// `storage`.
    pub(super) fn write(&self) -> Result<(), Error> {
        let stored = self.try_write();
        stored.map_err(|error| not_stored("what was kept", &error.to_string()))
    }

    fn try_write(&self) -> io::Result<()> {
        let bytes = {
            let mut state = self.state();
            state.changed = false;
            serde_json::to_vec(&*state)?
        };
        replace_private(&self.file, &bytes, self.durable)
    }

    fn state(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
