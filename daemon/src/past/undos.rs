//! Which versions of a file are undos and redos (UNDO-1).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use touchmark_engine::history::Undos;
use touchmark_proto::{AuthorKind, Hash, Millis, RelPath, Version};

use super::entry::{Entry, FileEntry};

/// The undos and redos of the journal, by file.
#[derive(Debug, Default)]
pub(crate) struct Recorded(HashMap<RelPath, OfFile>);

/// Returns the undos and redos that the journal has now.
pub(crate) type Undone = Arc<dyn Fn() -> Arc<Recorded> + Send + Sync>;

/// The undos and redos of one file, the oldest first.
#[derive(Debug, Default)]
struct OfFile {
    undos: Vec<Written>,
    /// What was written when the file got this name, and its name before.
    came: Vec<(Written, RelPath)>,
    /// What an undo wrote, and what the redo wrote that took it back.
    redos: Vec<[Written; 2]>,
}

/// A change that an undo or a redo made to a file.
#[derive(Clone, Copy, Debug)]
struct Written {
    /// When the undo or redo began.
    time: Millis,
    before: Option<Hash>,
    after: Option<Hash>,
}

impl Recorded {
    /// Collects the undos and redos of all entries, the oldest entry first.
    pub(crate) fn of(entries: &[Arc<Entry>]) -> Self {
        let mut files: HashMap<RelPath, OfFile> = HashMap::new();
        for entry in entries {
            for file in &entry.files {
                let Some(to) = &file.to else { continue };
                let own = entry.files.iter().find(|other| other.path == *to);
                let came = own.map(|own| (Written::of(entry, own), file.path.clone()));
                files.entry(to.clone()).or_default().came.extend(came);
            }
            let Some(number) = entry.redo_of else {
                for file in &entry.files {
                    let own = files.entry(file.path.clone()).or_default();
                    own.undos.push(Written::of(entry, file));
                }
                continue;
            };
            let Ok(undo) = entries.binary_search_by_key(&number, |undo| undo.number) else {
                continue;
            };
            let undo = &entries[undo];
            let undone: HashMap<&RelPath, &FileEntry> =
                undo.files.iter().map(|file| (&file.path, file)).collect();
            for file in &entry.files {
                if let Some(before) = undone.get(&file.path) {
                    // Of a file that was moved back, the move is the version
                    // under the name that it got.
                    let moved = before.to.as_ref().and_then(|to| undone.get(to));
                    let before = moved.unwrap_or(before);
                    let both = [Written::of(undo, before), Written::of(entry, file)];
                    let own = files.entry(file.path.clone()).or_default();
                    own.redos.push(both);
                }
            }
        }
        Self(files)
    }

    /// Returns the name that a file had before an undo or a redo gave it this
    /// one, given the time of the version and its content; `None` if none did.
    pub(super) fn came(&self, name: &RelPath, time: Millis, content: Hash) -> Option<&RelPath> {
        let all = self.0.get(name)?.came.iter();
        let is_this = |(written, _): &&(Written, RelPath)| {
            time >= written.time && written.after == Some(content)
        };
        all.rev().find(is_this).map(|(_, from)| from)
    }

    /// Returns whether an undo or a redo removed a file with this content at or
    /// after a time.
    pub(super) fn removed(&self, name: &RelPath, since: Millis, content: Hash) -> bool {
        let Some(file) = self.0.get(name) else {
            return false;
        };
        let redos = file.redos.iter().map(|[_, redo]| redo);
        let mut all = file.undos.iter().chain(redos);
        all.any(|one| one.time >= since && (one.before, one.after) == (Some(content), None))
    }

    /// Returns whether an undo wrote to a name at or after a time.
    pub(crate) fn wrote(&self, name: &RelPath, since: Millis) -> bool {
        let file = self.0.get(name);
        file.is_some_and(|file| file.undos.iter().any(|undo| undo.time >= since))
    }

    /// Returns which of a file's versions are undos and redos. A redo whose undo
    /// has no version is left out.
    pub(crate) fn among(&self, versions: &[Version]) -> Undos {
        let names: BTreeSet<&RelPath> = versions.iter().map(|version| &version.path).collect();
        let by_agents = versions.iter().enumerate();
        let by_agents = by_agents.filter(|(_, one)| one.author.kind == AuthorKind::Agent);
        let mut found = Undos {
            by_agents: by_agents.map(|(at, _)| at).collect(),
            ..Undos::default()
        };
        for file in names.into_iter().filter_map(|name| self.0.get(name)) {
            let undos = file.undos.iter().filter_map(|undo| undo.find(versions));
            let redos = file.redos.iter();
            let redos =
                redos.filter_map(|[undo, redo]| Some((undo.find(versions)?, redo.find(versions)?)));
            found.undos.extend(undos);
            found.redos.extend(redos);
        }
        found.undos.sort_unstable();
        found.redos.sort_unstable_by_key(|(_, redo)| *redo);
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
            // A name that the file got again had no content before, or that of
            // another file, which was undone as well.
            let has_moved = self.after.is_some() && before.path != version.path;
            version.author.kind != AuthorKind::Agent
                && version.time >= self.time
                && version.hash == self.after
                && (before.hash == self.before || has_moved)
        };
        let mut pairs = versions.array_windows();
        pairs.position(is_this).map(|at| at + 1)
    }
}
