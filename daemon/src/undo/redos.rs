//! Which versions of a file are redos (UNDO-1).

use std::collections::{BTreeSet, HashMap};

use touchmark_proto::{AuthorKind, Hash, Millis, RelPath, Version};

use super::journal::{Entry, FileEntry};

/// The redos of the journal, by file: for each, what the undo wrote and what
/// the redo wrote, the oldest redo first.
#[derive(Debug, Default)]
pub(crate) struct Redos(HashMap<RelPath, Vec<[Written; 2]>>);

/// A change that an undo or a redo made to a file.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// When the undo or redo began.
    time: Millis,
    before: Option<Hash>,
    after: Option<Hash>,
}

impl Redos {
    /// Collects the redos of all entries, the oldest entry first.
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut redos: HashMap<RelPath, Vec<[Written; 2]>> = HashMap::new();
        for redo in entries {
            let number = redo.redo_of;
            let Some(undo) = entries.iter().find(|entry| Some(entry.number) == number) else {
                continue;
            };
            let undone: HashMap<&RelPath, &FileEntry> =
                undo.files.iter().map(|file| (&file.path, file)).collect();
            for file in &redo.files {
                if let Some(own) = undone.get(&file.path) {
                    let both = [Written::of(undo, own), Written::of(redo, file)];
                    redos.entry(file.path.clone()).or_default().push(both);
                }
            }
        }
        Self(redos)
    }

    /// Returns the indexes of the versions that are redos, each with the index
    /// of the undo's version. A redo that has no version of its own, or whose
    /// undo has none, is left out.
    pub(crate) fn among(&self, versions: &[Version]) -> Vec<(usize, usize)> {
        let names: BTreeSet<&RelPath> = versions.iter().map(|version| &version.path).collect();
        let all = names.into_iter().filter_map(|name| self.0.get(name));
        let mut found: Vec<(usize, usize)> = all
            .flatten()
            .filter_map(|[undo, redo]| Some((undo.find(versions)?, redo.find(versions)?)))
            .collect();
        found.sort_unstable_by_key(|(_, redo)| *redo);
        found
    }
}

impl Written {
    fn of(entry: &Entry, file: &FileEntry) -> Self {
        Self {
            time: entry.time,
            before: file.before,
            after: file.after,
        }
    }

    /// Returns the index of the version that this change made.
    fn find(&self, versions: &[Version]) -> Option<usize> {
        let is_this = |[before, version]: &[Version; 2]| {
            version.author.kind != AuthorKind::Agent
                && version.time >= self.time
                && (before.hash, version.hash) == (self.before, self.after)
        };
        let mut pairs = versions.array_windows();
        pairs.position(is_this).map(|at| at + 1)
    }
}
