//! Undos on disk: what the next start completes, and what a redo writes back.
//!
//! Each undo has a directory with its entry, and with the bytes of each of its
//! files before and after. The entry is written last, by a rename. Only then is
//! anything written into the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use touchmark_engine::Fact;
use touchmark_proto::undo::UndoRow;
use touchmark_proto::{
    Author, Error, ErrorCode, ErrorData, FileMode, Hash, Millis, RelPath, SessionId,
};

use super::plan::Plan;
use super::undos::Recorded;
use crate::failpoint;
use crate::life::usable_directory;
use crate::system::open::{private_directory, replace_private, write_private};

/// The maximum number of undos that are kept. Older ones are removed.
const KEPT: usize = 100;

/// The file name of an undo's entry.
const ENTRY: &str = "entry.json";

/// The file name of the entry of a completed undo whose entry could not be
/// rewritten. An entry with this name counts as [`State::Done`], whatever its
/// `state` is.
const DONE: &str = "done.json";

/// The directory of undos.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    durable: bool,
    /// Locked while a task undoes, redoes or keeps changes, so that only one
    /// does.
    gate: tokio::sync::Mutex<()>,
    /// What all entries have written; `None` if entries were changed since.
    recorded: Mutex<Option<Arc<Recorded>>>,
}

/// The journal's entry of an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) time: Millis,
    /// What is undone, in words for people.
    pub(super) what: String,
    /// The number of the undo that this redo reverts; `None` for an undo.
    pub(super) redo_of: Option<u64>,
    pub(super) state: State,
    pub(super) authors: Vec<Author>,
    pub(super) files: Vec<FileEntry>,
}

/// The progress of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// The files are being written.
    Begun,
    /// All files are written or were left out.
    Done,
}

/// One file of an undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileEntry {
    /// The prefix of the names of this file's contents in the undo's directory
    /// (`<id>.before`, `<id>.after`).
    id: usize,
    pub(super) path: RelPath,
    /// The hash of the content before the undo; `None` if there was no file.
    pub(super) before: Option<Hash>,
    pub(super) after: Option<Hash>,
    /// The mode after the undo; `None` if it is not known.
    mode: Option<u32>,
    /// The mode before the undo; `None` if it is not known.
    #[serde(default)]
    was: Option<u32>,
    /// The other name that the file gets; `None` if it is not renamed. The file
    /// is removed under this name only after it was written under the other.
    #[serde(default)]
    pub(super) to: Option<RelPath>,
    /// The sessions whose changes are undone in the file; `None` in the list
    /// stands for changes of no session. `None` in entries of an older
    /// touchmark.
    #[serde(default)]
    pub(super) by: Option<BTreeSet<Option<SessionId>>>,
    /// The number of places that change.
    #[serde(default)]
    pub(super) hunks: u32,
    /// The number of places that keep their lines, since they were changed
    /// later.
    #[serde(default)]
    pub(super) conflicts: u32,
}

impl Entry {
    /// Returns the facts about the undo, one for each session with changes in
    /// the files of the entry.
    pub(super) fn facts(&self) -> Vec<Fact> {
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
}

impl FileEntry {
    /// Returns the sessions whose changes are undone in the file, in an entry
    /// of these authors.
    pub(super) fn sessions(&self, authors: &[Author]) -> BTreeSet<Option<SessionId>> {
        let all = || authors.iter().map(|author| author.session.clone());
        self.by.clone().unwrap_or_else(|| all().collect())
    }

    /// Returns whether the file was, before this undo, as `later` has left it.
    pub(super) fn begins_as(&self, later: &Self) -> bool {
        (self.path == later.path && self.before == later.after)
            && (self.was == later.mode || self.was.is_none() || later.mode.is_none())
    }

    /// Returns the file's modes before and after the undo; `None` for one that
    /// is not known.
    pub(super) fn modes(&self) -> [Option<FileMode>; 2] {
        [self.was, self.mode].map(|mode| FileMode::new(mode?))
    }
}

/// A file's content; `None` for no file.
pub(super) type Bytes = Option<Arc<[u8]>>;

impl Journal {
    /// Opens the journal of the workspace whose state directory is `state`.
    ///
    /// # Errors
    /// If that directory cannot be used.
    pub(crate) fn open(state: &Path, durable: bool) -> Result<Self, crate::Error> {
        let directory = state.join("undo");
        usable_directory(&directory)?;
        Ok(Self {
            directory,
            durable,
            gate: tokio::sync::Mutex::new(()),
            recorded: Mutex::new(None),
        })
    }

    /// Waits until no other task undoes, redoes or keeps changes, and prevents
    /// others from doing so until the guard is dropped.
    pub(crate) async fn alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.gate.lock().await
    }

    /// Records an undo or redo, before any of its files is written.
    pub(super) fn begin(
        &self,
        time: Millis,
        what: String,
        authors: Vec<Author>,
        redo_of: Option<u64>,
        plans: &[&Plan],
    ) -> Result<Entry, Error> {
        let number = self.numbers().last().map_or(1, |last| last + 1);
        let mut entry = Entry {
            number,
            time,
            what,
            redo_of,
            state: State::Begun,
            authors,
            files: Vec::with_capacity(plans.len()),
        };
        let directory = self.of(number);
        let made = || -> io::Result<()> {
            private_directory().create(&directory)?;
            for (at, plan) in plans.iter().enumerate() {
                self.keep(&mut entry, at, plan)?;
            }
            self.write(&entry)
        }();
        if let Err(error) = made {
            let _nothing_begun = fs::remove_dir_all(&directory);
            return Err(not_kept(&error));
        }
        failpoint::pass("undo: an intent is recorded");
        self.prune();
        Ok(entry)
    }

    /// Replaces the record of the file at index `at`, before that file is
    /// written.
    pub(super) fn change(&self, entry: &mut Entry, at: usize, plan: &Plan) -> Result<(), Error> {
        self.keep(entry, at, plan)
            .and_then(|()| self.write(entry))
            .map_err(|error| not_kept(&error))
    }

    fn keep(&self, entry: &mut Entry, at: usize, plan: &Plan) -> io::Result<()> {
        let write = |name: &str, bytes: &Bytes| match bytes {
            Some(bytes) => {
                let file = self.of(entry.number).join(name);
                write_private(&file, bytes, self.durable)
            }
            None => Ok(()),
        };
        let id = entry.files.get(at).map_or(at, |file| file.id);
        write(&format!("{id}.before"), &plan.before)?;
        write(&format!("{id}.after"), &plan.after)?;
        let file = FileEntry {
            id,
            path: plan.path.clone(),
            before: plan.before.as_deref().map(Hash::of),
            after: plan.after.as_deref().map(Hash::of),
            mode: plan.mode.map(FileMode::bits),
            was: plan.was.map(FileMode::bits),
            to: plan.to.clone(),
            by: Some(plan.by.clone()),
            hunks: plan.hunks,
            conflicts: u32::try_from(plan.conflicts.len()).unwrap_or(u32::MAX),
        };
        match entry.files.get_mut(at) {
            Some(old) => *old = file,
            None => entry.files.push(file),
        }
        Ok(())
    }

    /// Returns the contents and modes of a file before and after the undo that
    /// the redo `entry` reverts; `None` if `entry` is an undo.
    pub(super) fn redo_of(
        &self,
        entry: &Entry,
        at: usize,
    ) -> Option<([Bytes; 2], [Option<FileMode>; 2])> {
        let undone = self.read(entry.redo_of?)?;
        let path = &entry.files.get(at)?.path;
        let at = undone.files.iter().position(|file| file.path == *path)?;
        let contents = self.contents(&undone, at).ok()?;
        Some((contents, undone.files[at].modes()))
    }

    /// Marks an entry as done. The files that were left out must have been
    /// removed from `files`. An entry without files is removed.
    pub(super) fn end(&self, entry: &mut Entry) {
        entry.state = State::Done;
        let ended = match entry.files.is_empty() {
            true => fs::remove_dir_all(self.of(entry.number)),
            // A full disk may prevent a rewrite of the entry, but not a rename.
            false => self.write(entry).or_else(|_| self.rename(entry.number)),
        };
        if let Err(error) = ended {
            // If the entry stays begun, the next start finds all of its files
            // written.
            tracing::warn!("undo {}: {error}", entry.number);
        }
        failpoint::pass("undo: an intent is ended");
    }

    /// Returns the undos that an earlier daemon began and did not complete.
    pub(super) fn left(&self) -> Vec<Entry> {
        let mut left = Vec::new();
        for number in self.numbers() {
            match self.read(number) {
                Some(entry) if entry.state == State::Begun => left.push(entry),
                Some(_) => {}
                // The entry is incomplete, so no file was written yet.
                None => {
                    let _gone = fs::remove_dir_all(self.of(number));
                }
            }
        }
        left
    }

    /// Removes the undos of a session's changes, or all undos if `session` is
    /// `None`, since they contain files' contents (SEC-3).
    pub(crate) fn forget(&self, session: Option<&SessionId>) {
        self.set_changed();
        for entry in self.all() {
            let is_of = |author: &Author| author.session.as_ref() == session;
            if session.is_none() || entry.authors.iter().any(is_of) {
                let directory = self.of(entry.number);
                if let Err(error) = fs::remove_dir_all(&directory) {
                    tracing::warn!("{}: {error}", directory.display());
                }
            }
        }
    }

    /// Returns which changes of files were undos and redos.
    pub(crate) fn recorded(&self) -> Arc<Recorded> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recorded.get_or_insert_with(|| {
            let all: Vec<Entry> = self.all().collect();
            Arc::new(Recorded::of(&all))
        });
        Arc::clone(known)
    }

    /// Notes that entries were changed.
    fn set_changed(&self) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the undo named `name`. Without a name, returns the newest undo
    /// that no redo has reverted.
    pub(super) fn entry(&self, name: Option<&str>) -> Result<Entry, Error> {
        let all: Vec<Entry> = self.all().collect();
        let is_taken_back = |entry: &Entry| {
            let mut later = all.iter();
            later.any(|other| other.redo_of == Some(entry.number))
        };
        let found = match name {
            Some(name) => {
                let number = name.strip_prefix('u').and_then(|n| n.parse::<u64>().ok());
                all.iter().find(|entry| Some(entry.number) == number)
            }
            None => all
                .iter()
                .rev()
                .find(|entry| entry.redo_of.is_none() && !is_taken_back(entry)),
        };
        found.cloned().ok_or_else(|| {
            Error::new(ErrorCode::NotFound, "there is no such undo")
                .hint("`undo/list` has those that are kept")
        })
    }

    /// Returns a file's contents before and after the undo.
    pub(super) fn contents(&self, entry: &Entry, at: usize) -> Result<[Bytes; 2], Error> {
        let file = &entry.files[at];
        let read = |name: &str, hash: Option<Hash>| -> io::Result<Bytes> {
            let Some(hash) = hash else { return Ok(None) };
            let bytes = fs::read(self.of(entry.number).join(format!("{}.{name}", file.id)))?;
            if Hash::of(&bytes) != hash {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"));
            }
            Ok(Some(bytes.into()))
        };
        let both = || Ok([read("before", file.before)?, read("after", file.after)?]);
        both().map_err(|error: io::Error| not_kept(&error))
    }

    /// Returns the rows of `undo/list`, the newest undo first.
    pub(super) fn rows(&self) -> Vec<UndoRow> {
        let mut rows: Vec<UndoRow> = self
            .all()
            .map(|entry| UndoRow {
                undo: name(entry.number),
                time: entry.time,
                what: entry.what,
                redo_of: entry.redo_of.map(name),
                paths: entry.files.into_iter().map(|file| file.path).collect(),
            })
            .collect();
        rows.reverse();
        rows
    }

    fn all(&self) -> impl Iterator<Item = Entry> {
        let numbers = self.numbers().into_iter();
        numbers.filter_map(|number| self.read(number))
    }

    /// Returns the numbers of all recorded undos, in ascending order.
    fn numbers(&self) -> Vec<u64> {
        let entries = fs::read_dir(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        let mut numbers: Vec<u64> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn of(&self, number: u64) -> PathBuf {
        self.directory.join(number.to_string())
    }

    fn read(&self, number: u64) -> Option<Entry> {
        let directory = self.of(number);
        let read = |name: &str| -> Option<Entry> {
            serde_json::from_slice(&fs::read(directory.join(name)).ok()?).ok()
        };
        let done = |entry: Entry| Entry {
            state: State::Done,
            ..entry
        };
        read(ENTRY).or_else(|| read(DONE).map(done))
    }

    /// Marks an undo as done by renaming its entry, which works on a full disk
    /// too.
    fn rename(&self, number: u64) -> io::Result<()> {
        let directory = self.of(number);
        fs::rename(directory.join(ENTRY), directory.join(DONE))
    }

    fn write(&self, entry: &Entry) -> io::Result<()> {
        self.set_changed();
        let directory = self.of(entry.number);
        let bytes = serde_json::to_vec(entry)?;
        replace_private(&directory.join(ENTRY), &bytes, self.durable)?;
        if self.durable {
            File::open(&directory)?.sync_data()?;
            File::open(&self.directory)?.sync_data()?;
        }
        Ok(())
    }

    fn prune(&self) {
        let numbers = self.numbers();
        for number in &numbers[..numbers.len().saturating_sub(KEPT)] {
            let _gone = fs::remove_dir_all(self.of(*number));
        }
    }
}

/// Returns the name of an undo in the protocol: `u<number>`.
pub(super) fn name(number: u64) -> String {
    format!("u{number}")
}

fn not_kept(error: &io::Error) -> Error {
    let cause = error.to_string();
    Error::new(
        ErrorCode::Storage,
        format!("nothing was undone, since it could not be made safe: {cause}"),
    )
    .with(ErrorData {
        cause: Some(cause),
        ..ErrorData::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn undo4_an_undo_whose_end_cannot_be_written_is_done() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(state.path(), false).unwrap();
        let path = RelPath::new(b"f").unwrap();
        let plan = Plan::failed(&path, Error::invalid("a plan"));
        let mut entry = journal
            .begin(1, "all".into(), Vec::new(), None, &[&plan])
            .unwrap();
        assert_eq!(journal.left().len(), 1);
        // As on a full disk, the file next to the entry cannot be written.
        fs::create_dir(journal.of(entry.number).join("entry.part")).unwrap();
        journal.end(&mut entry);
        assert_eq!(journal.left(), []);
        assert_eq!(journal.rows().len(), 1);
    }
}
