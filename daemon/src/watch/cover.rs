//! Which names speak for which tracked path. Mostly a path speaks for itself;
//! where it leads through symlinks, so does every link on the way and the
//! file at the end.

use std::collections::{BTreeMap, HashMap};
use std::slice;

use touchmark_proto::RelPath;

use super::dirs::at_or_below;

/// Only what is not usual takes room: that a tracked path speaks for itself
/// alone goes without saying. The lists are as they are handed out, so they
/// hold the path itself, too.
///
/// Invariant: for `e` other than `t`, `more[e]` holds `t` exactly when
/// `others[t]` holds `e`.
#[derive(Default)]
pub(super) struct Cover {
    tracked: BTreeMap<RelPath, ()>,
    /// The names that speak for a tracked path, where there are several;
    /// itself first.
    others: HashMap<RelPath, Vec<RelPath>>,
    /// The tracked paths that a name speaks for, if not for itself alone.
    more: BTreeMap<RelPath, Vec<RelPath>>,
}

impl Cover {
    pub(super) fn is_tracked(&self, path: &RelPath) -> bool {
        self.tracked.contains_key(path)
    }

    /// The names that speak for a tracked path; itself first.
    pub(super) fn entries_of(&self, tracked: &RelPath) -> &[RelPath] {
        match self.others.get(tracked) {
            Some(entries) => entries,
            None => self.itself(tracked),
        }
    }

    /// The tracked paths that a name speaks for.
    pub(super) fn spoken_for(&self, entry: &RelPath) -> &[RelPath] {
        match self.more.get(entry) {
            Some(spoken_for) => spoken_for,
            None => self.itself(entry),
        }
    }

    /// The path, if it is tracked.
    fn itself(&self, path: &RelPath) -> &[RelPath] {
        let known = self.tracked.get_key_value(path);
        known.map_or(&[], |(path, ())| slice::from_ref(path))
    }

    /// The names strictly below a directory that speak for something.
    pub(super) fn entries_below(&self, directory: &RelPath) -> Vec<RelPath> {
        let mut entries = at_or_below(&self.tracked, directory);
        entries.extend(at_or_below(&self.more, directory));
        entries.retain(|entry| entry != directory);
        entries.sort();
        entries.dedup();
        entries
    }

    /// Whether `path` or something below it is tracked by that very name.
    pub(super) fn holds_tracked(&self, path: &RelPath) -> bool {
        !at_or_below(&self.tracked, path).is_empty()
    }

    pub(super) fn all_tracked(&self) -> Vec<RelPath> {
        self.tracked.keys().cloned().collect()
    }

    /// Lets `path` speak for itself; says whether that is news.
    pub(super) fn track(&mut self, path: &RelPath) -> bool {
        let news = self.tracked.insert(path.clone(), ()).is_none();
        if news && let Some(spoken_for) = self.more.get_mut(path) {
            spoken_for.push(path.clone());
        }
        news
    }

    /// Lets `entry` speak for `tracked`, which is tracked, too.
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
