//! Which names speak for which tracked path. Mostly a path speaks for itself;
//! where it leads through symlinks, so does every link on the way and the
//! file at the end.

use std::collections::{BTreeMap, HashMap};

use touchmark_proto::RelPath;

use super::dirs::at_or_below;

/// Invariant: `entries[e]` holds `t` exactly when `tracked[t]` holds `e`; and
/// `tracked[t]` begins with `t` itself.
#[derive(Default)]
pub(super) struct Cover {
    entries: BTreeMap<RelPath, Vec<RelPath>>,
    tracked: HashMap<RelPath, Vec<RelPath>>,
}

impl Cover {
    pub(super) fn is_tracked(&self, path: &RelPath) -> bool {
        self.tracked.contains_key(path)
    }

    /// The names that speak for a tracked path; itself first.
    pub(super) fn entries_of(&self, tracked: &RelPath) -> &[RelPath] {
        self.tracked.get(tracked).map_or(&[], Vec::as_slice)
    }

    /// The tracked paths that a name speaks for.
    pub(super) fn spoken_for(&self, entry: &RelPath) -> &[RelPath] {
        self.entries.get(entry).map_or(&[], Vec::as_slice)
    }

    /// The names strictly below a directory that speak for something.
    pub(super) fn entries_below(&self, directory: &RelPath) -> Vec<RelPath> {
        let mut entries = at_or_below(&self.entries, directory);
        entries.retain(|entry| entry != directory);
        entries
    }

    /// Whether `path` or something below it is tracked by that very name.
    pub(super) fn holds_tracked(&self, path: &RelPath) -> bool {
        self.is_tracked(path)
            || at_or_below(&self.entries, path)
                .iter()
                .any(|entry| self.is_tracked(entry))
    }

    pub(super) fn all_tracked(&self) -> Vec<RelPath> {
        self.tracked.keys().cloned().collect()
    }

    /// Lets `entry` speak for `tracked`, too.
    pub(super) fn add(&mut self, tracked: &RelPath, entry: &RelPath) {
        self.tracked
            .entry(tracked.clone())
            .or_default()
            .push(entry.clone());
        self.entries
            .entry(entry.clone())
            .or_default()
            .push(tracked.clone());
    }

    /// The opposite of [`add`](Self::add).
    pub(super) fn remove(&mut self, tracked: &RelPath, entry: &RelPath) {
        if let Some(entries) = self.tracked.get_mut(tracked) {
            entries.retain(|other| other != entry);
            if entries.is_empty() {
                self.tracked.remove(tracked);
            }
        }
        if let Some(spoken_for) = self.entries.get_mut(entry) {
            spoken_for.retain(|other| other != tracked);
            if spoken_for.is_empty() {
                self.entries.remove(entry);
            }
        }
    }
}
