//! Which names speak for which tracked path. Mostly a path speaks for itself;
//! where it leads through symlinks, so does every link on the way and the
//! file at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice;

use touchmark_proto::RelPath;

use super::dirs::at_or_below;

/// Invariant: `more[e]` holds `t` exactly when `others[t]` holds `e`, and
/// neither is `e == t`, which goes without saying for all that is tracked.
#[derive(Default)]
pub(super) struct Cover {
    tracked: BTreeSet<RelPath>,
    /// The names that speak for a tracked path beside itself. Itself first, as
    /// they are handed out.
    others: HashMap<RelPath, Vec<RelPath>>,
    /// The tracked paths that a name speaks for, if not for itself alone.
    more: BTreeMap<RelPath, Vec<RelPath>>,
}

impl Cover {
    pub(super) fn is_tracked(&self, path: &RelPath) -> bool {
        self.tracked.contains(path)
    }

    /// The names that speak for a tracked path; itself first.
    pub(super) fn entries_of(&self, tracked: &RelPath) -> &[RelPath] {
        match self.others.get(tracked) {
            Some(entries) => entries,
            None => self.tracked.get(tracked).map_or(&[], slice::from_ref),
        }
    }

    /// The tracked paths that a name speaks for.
    pub(super) fn spoken_for(&self, entry: &RelPath) -> &[RelPath] {
        match self.more.get(entry) {
            Some(spoken_for) => spoken_for,
            None => self.tracked.get(entry).map_or(&[], slice::from_ref),
        }
    }

    /// The names strictly below a directory that speak for something.
    pub(super) fn entries_below(&self, directory: &RelPath) -> Vec<RelPath> {
        let mut entries = below(&self.tracked, directory);
        entries.extend(at_or_below(&self.more, directory));
        entries.retain(|entry| entry != directory);
        entries.sort();
        entries.dedup();
        entries
    }

    /// Whether `path` or something below it is tracked by that very name.
    pub(super) fn holds_tracked(&self, path: &RelPath) -> bool {
        self.is_tracked(path) || !below(&self.tracked, path).is_empty()
    }

    pub(super) fn all_tracked(&self) -> Vec<RelPath> {
        self.tracked.iter().cloned().collect()
    }

    /// Lets `path` speak for itself.
    pub(super) fn track(&mut self, path: &RelPath) {
        self.tracked.insert(path.clone());
        if let Some(spoken_for) = self.more.get_mut(path) {
            spoken_for.push(path.clone());
        }
    }

    /// Lets `entry` speak for `tracked`, which is tracked, too.
    pub(super) fn add(&mut self, tracked: &RelPath, entry: &RelPath) {
        self.others
            .entry(tracked.clone())
            .or_insert_with(|| vec![tracked.clone()])
            .push(entry.clone());
        let itself = self.tracked.contains(entry);
        self.more
            .entry(entry.clone())
            .or_insert_with(|| itself.then(|| entry.clone()).into_iter().collect())
            .push(tracked.clone());
    }

    /// The opposite of [`track`](Self::track) and [`add`](Self::add).
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

/// What lies below a directory.
fn below(paths: &BTreeSet<RelPath>, directory: &RelPath) -> Vec<RelPath> {
    // As in `at_or_below`.
    let Ok(first) = directory.join(b"\x01") else {
        return Vec::new();
    };
    paths
        .range(first..)
        .take_while(|path| path.below(directory).is_some())
        .cloned()
        .collect()
}
