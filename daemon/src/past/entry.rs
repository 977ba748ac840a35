//! The record of an undo or a redo in the journal.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use touchmark_engine::Fact;
use touchmark_proto::{Author, FileMode, Hash, Millis, RelPath, SessionId};

use crate::guard::Name;

/// The journal's entry of an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) time: Millis,
    /// What is undone, in words for people.
    pub(crate) what: String,
    /// The number of the undo that this redo reverts; `None` for an undo.
    pub(crate) redo_of: Option<u64>,
    pub(crate) state: State,
    pub(crate) authors: Vec<Author>,
    pub(crate) files: Vec<FileEntry>,
}

/// The progress of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    /// The files are being written.
    Begun,
    /// All files are written or were left out.
    Done,
}

/// One file of an undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileEntry {
    /// The prefix of the names of this file's contents in the undo's directory
    /// (`<id>.before`, `<id>.after`), in entries of an older touchmark.
    pub(crate) id: usize,
    /// Where the contents before and after are among the undo's: the offset and
    /// the length of each, in bytes. `None` in entries of an older touchmark.
    #[serde(default)]
    pub(crate) at: Option<[[u64; 2]; 2]>,
    pub(crate) path: RelPath,
    /// The hash of the content before the undo; `None` if there was no file.
    pub(crate) before: Option<Hash>,
    pub(crate) after: Option<Hash>,
    /// The mode after the undo; `None` if it is not known.
    pub(crate) mode: Option<u32>,
    /// The mode before the undo; `None` if it is not known.
    #[serde(default)]
    pub(crate) was: Option<u32>,
    /// The other name that the file gets; `None` if it is not renamed. The file
    /// is removed under this name only after it was written under the other.
    #[serde(default)]
    pub(crate) to: Option<RelPath>,
    /// The sessions whose changes are undone in the file; `None` in the list
    /// stands for changes of no session. `None` in entries of an older
    /// touchmark.
    #[serde(default)]
    pub(crate) by: Option<BTreeSet<Option<SessionId>>>,
    /// The number of places that change.
    #[serde(default)]
    pub(crate) hunks: u32,
    /// The number of places that keep their lines, since they were changed
    /// later.
    #[serde(default)]
    pub(crate) conflicts: u32,
    /// The name behind the symlinks on the path that may be followed; `None` if
    /// there were none.
    #[serde(default)]
    pub(crate) real: Option<RelPath>,
    /// The contents are not stored, since they may not be or another process has
    /// saved the file. They cannot be brought back.
    #[serde(default)]
    pub(crate) bare: bool,
}

impl Entry {
    /// Returns the facts about the undo, one for each session with changes in
    /// the files of the entry.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let mut counts: BTreeMap<Option<SessionId>, [u32; 3]> = BTreeMap::new();
        for file in &self.files {
            for session in file.sessions(&self.authors) {
                let sums = counts.entry(session).or_default();
                for (sum, more) in sums.iter_mut().zip([1, file.hunks, file.conflicts]) {
                    *sum = sum.saturating_add(more);
                }
            }
        }
        counts
            .into_iter()
            .map(|(session, [files, hunks, conflicts])| Fact::Undone {
                session,
                undo: self.redo_of.unwrap_or(self.number),
                redo: self.redo_of.is_some(),
                files,
                hunks,
                conflicts,
            })
            .collect()
    }

    /// Returns the entry without some of its files.
    pub(crate) fn without(&self, paths: &[RelPath]) -> Self {
        let mut entry = self.clone();
        entry.files.retain(|file| !paths.contains(&file.path));
        entry
    }
}

impl FileEntry {
    /// Returns the sessions whose changes are undone in the file, in an entry
    /// of these authors.
    pub(crate) fn sessions(&self, authors: &[Author]) -> BTreeSet<Option<SessionId>> {
        let all = || authors.iter().map(|author| author.session.clone());
        self.by.clone().unwrap_or_else(|| all().collect())
    }

    /// Returns the file's name, with the links that may be followed.
    pub(crate) fn name(&self) -> Name {
        Name {
            path: self.path.clone(),
            real: self.real.clone(),
        }
    }

    /// Returns whether the file was, before this undo, as `later` has left it.
    pub(crate) fn begins_as(&self, later: &Self) -> bool {
        (self.path == later.path && self.before == later.after)
            && (self.was == later.mode || self.was.is_none() || later.mode.is_none())
    }

    /// Returns the file's modes before and after the undo; `None` for one that
    /// is not known.
    pub(crate) fn modes(&self) -> [Option<FileMode>; 2] {
        [self.was, self.mode].map(|mode| FileMode::new(mode?))
    }
}
