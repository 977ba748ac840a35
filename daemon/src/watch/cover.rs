//! Which names are *entries* of which tracked path. An entry is a name whose
//! events concern the path: usually only the path itself. If it resolves
//! through symlinks, every link on the way and the file at the end are entries
//! as well.

use std::collections::{BTreeMap, HashMap};
use std::slice;

use touchmark_proto::RelPath;

use super::dirs::at_or_below;

/// The map from tracked paths to entries and back. A tracked path that is its
/// own only entry is not in the two lists, to save memory. The lists in them
/// are as they are returned, so they contain the path itself.
///
/// Invariant: for `e` other than `t`, `more[e]` contains `t` exactly if
/// `others[t]` contains `e`.
#[derive(Default)]
pub(super) struct Cover {
    tracked: BTreeMap<RelPath, ()>,
    /// The entries of each tracked path that has several; the path itself
    /// first.
    others: HashMap<RelPath, Vec<RelPath>>,
    /// The tracked paths of each entry, except where that is only the entry
    /// itself.
    more: BTreeMap<RelPath, Vec<RelPath>>,
}

impl Cover {
    pub(super) fn is_tracked(&self, path: &RelPath) -> bool {
        self.tracked.contains_key(path)
    }

    /// Returns the entries of a tracked path, the path itself first.
    pub(super) fn entries_of(&self, tracked: &RelPath) -> &[RelPath] {
        match self.others.get(tracked) {
            Some(entries) => entries,
            None => self.itself(tracked),
        }
    }

    /// Returns the tracked paths that have this name as an entry.
    pub(super) fn spoken_for(&self, entry: &RelPath) -> &[RelPath] {
        match self.more.get(entry) {
            Some(spoken_for) => spoken_for,
            None => self.itself(entry),
        }
    }

    /// Returns a list of the path alone, or an empty one if it is not tracked.
    fn itself(&self, path: &RelPath) -> &[RelPath] {
        let known = self.tracked.get_key_value(path);
        known.map_or(&[], |(path, ())| slice::from_ref(path))
    }

    /// Returns the entries strictly below a directory.
    pub(super) fn entries_below(&self, directory: &RelPath) -> Vec<RelPath> {
        let mut entries = at_or_below(&self.tracked, directory);
        entries.extend(at_or_below(&self.more, directory));
        entries.retain(|entry| entry != directory);
        entries.sort();
        entries.dedup();
        entries
    }

    /// Returns whether `path` itself, or a name below it, is tracked.
    pub(super) fn holds_tracked(&self, path: &RelPath) -> bool {
        !at_or_below(&self.tracked, path).is_empty()
    }

    pub(super) fn all_tracked(&self) -> Vec<RelPath> {
        self.tracked.keys().cloned().collect()
    }

    /// Makes `path` tracked. Returns whether it was not tracked before.
    pub(super) fn track(&mut self, path: &RelPath) -> bool {
        let news = self.tracked.insert(path.clone(), ()).is_none();
        if news && let Some(spoken_for) = self.more.get_mut(path) {
            spoken_for.push(path.clone());
        }
        news
    }

    /// Makes `entry` an entry of `tracked`, which is tracked already.
    pub(super) fn add(&mut self, tracked: &RelPath, entry: &RelPath) {
        self.others
            .entry(tracked.clone())
            .or_insert_with(|| vec![tracked.clone()])
            .push(entry.clone());
        let itself = self.itself(entry).to_vec();
        self.more
            .entry(entry.clone())
            .or_insert(itself)
            .push(tracked.clone());
    }

    /// Reverts [`track`](Self::track) or [`add`](Self::add).
    pub(super) fn remove(&mut self, tracked: &RelPath, entry: &RelPath) {
        if tracked == entry {
            self.tracked.remove(tracked);
        } else if let Some(entries) = self.others.get_mut(tracked) {
            entries.retain(|other| other != entry);
            if entries.len() <= 1 {
                self.others.remove(tracked);
            }
        }
        if let Some(spoken_for) = self.more.get_mut(entry) {
            spoken_for.retain(|other| other != tracked);
            if spoken_for.iter().all(|other| other == entry) {
                self.more.remove(entry);
            }
        }
    }
}
