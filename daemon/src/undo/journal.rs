//! Undos on disk: what the next start completes, and what a redo writes back.
//!
//! Each undo has a directory with its entry, and with the bytes of each of its
//! files before and after, one after the other in one file. The entry is written
//! last, by a rename. Only then is anything written into the workspace.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use touchmark_engine::recall::undo_name;
use touchmark_proto::undo::{UndoOutcome, UndoRow};
use touchmark_proto::{Author, Error, ErrorCode, ErrorData, FileMode, Hash, SessionId};

use super::Undoer;
use super::contents::{self, Contents};
use super::entries::Entries;
use super::plan::{self, Plan};
use crate::failpoint;
use crate::guard::{NotStored, Storage, Stored, over_budget};
use crate::life::usable_directory;
use crate::past::entry::{Entry, FileEntry, State};
use crate::past::undos::Recorded;
use crate::system::open::private_directory;

/// The extensions of a file's contents before and after, which an older
/// touchmark has stored in files of their own.
const OWN: [&str; 2] = ["before", "after"];

/// The directory of undos.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Entries,
    /// Locked while a task undoes, redoes or keeps changes, so that only one
    /// does.
    gate: tokio::sync::Mutex<()>,
}

/// An undo whose files are about to be written.
pub(super) struct Begun {
    pub(super) entry: Entry,
    /// For each file of the entry: the proof that its present content is stored;
    /// `None` if another process has saved it since it was planned.
    pub(super) stored: Vec<Option<Stored>>,
}

/// Why a file is left as it is: the outcome and the cause, for people.
pub(super) type Left = (UndoOutcome, String);

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
            entries: Entries::new(directory, durable),
            gate: tokio::sync::Mutex::new(()),
        })
    }

    /// Waits until no other task undoes, redoes or keeps changes, and prevents
    /// others from doing so until the guard is dropped.
    pub(crate) async fn alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.gate.lock().await
    }

    /// Records an undo or redo, before any of its files is written. A file whose
    /// present content cannot be stored is left as it is. The plans that write
    /// come first afterwards, in the order of the entry's files. Returns `None`
    /// if none does.
    ///
    /// # Errors
    /// `storage`: nothing is recorded then.
    pub(super) fn begin(
        &self,
        undoer: &Undoer,
        what: String,
        authors: Vec<Author>,
        redo_of: Option<u64>,
        plans: &mut [Plan],
    ) -> Result<Option<Begun>, Error> {
        let number = self.entries.numbers().last().map_or(1, |last| last + 1);
        let mut entry = Entry {
            number,
            time: undoer.cx.now,
            what,
            redo_of,
            state: State::Begun,
            authors,
            files: Vec::new(),
        };
        let directory = self.entries.of(number);
        let writes = plans.iter().any(Plan::writes);
        if !writes {
            return Ok(None);
        }
        let made = private_directory().create(&directory);
        made.map_err(|error| not_kept(&error))?;
        let mut contents = Contents::open(&directory);
        let mut stored = Vec::new();
        let mut left = undoer.replacer.budget();
        for at in 0..plans.len() {
            if !plans[at].writes() {
                continue;
            }
            let next = entry.files.len();
            match self.keep(
                undoer,
                &mut entry,
                next,
                &plans[at],
                &mut left,
                &mut contents,
            ) {
                Ok(proof) => stored.push((at, proof)),
                Err(cause) => {
                    plans[at].leave_as(cause);
                    if let Some(from) = plans[at].to.take() {
                        plan::leave_old_name(plans, at, &from);
                    }
                }
            }
        }
        // A file that keeps its name is not written under the old one, which
        // may have come before it.
        let mut files = std::mem::take(&mut entry.files).into_iter();
        let mut proofs = Vec::with_capacity(stored.len());
        for (at, proof) in stored {
            let file = files.next().filter(|_| plans[at].writes());
            proofs.extend(file.is_some().then_some(proof));
            entry.files.extend(file);
        }
        let written = match entry.files.is_empty() {
            true => self.entries.remove(number),
            false => self.write_with(&entry, &contents),
        };
        if let Err(error) = written {
            let _nothing_begun = self.entries.remove(number);
            return Err(not_kept(&error));
        }
        plans.sort_by_key(|plan| !plan.writes());
        if entry.files.is_empty() {
            return Ok(None);
        }
        failpoint::pass("undo: an intent is recorded");
        self.entries.prune();
        Ok(Some(Begun {
            entry,
            stored: proofs,
        }))
    }

    /// Replaces the record of the file at index `at`, before that file is
    /// written.
    ///
    /// # Errors
    /// Why the file is left as it is.
    pub(super) fn change(
        &self,
        undoer: &Undoer,
        entry: &mut Entry,
        at: usize,
        plan: &Plan,
    ) -> Result<Option<Stored>, Left> {
        let failed = |error| (UndoOutcome::Failed, not_kept(&error).message);
        let mut left = undoer.replacer.budget();
        let mut contents = Contents::open(&self.entries.of(entry.number));
        let stored = self.keep(undoer, entry, at, plan, &mut left, &mut contents)?;
        self.write_with(entry, &contents).map_err(failed)?;
        Ok(stored)
    }

    /// Stores the contents of a file before and after. Returns `None` if another
    /// process has saved the file meanwhile.
    fn keep(
        &self,
        undoer: &Undoer,
        entry: &mut Entry,
        at: usize,
        plan: &Plan,
        left: &mut u64,
        contents: &mut io::Result<Contents>,
    ) -> Result<Option<Stored>, Left> {
        let id = match entry.files.get(at) {
            Some(file) => file.id,
            None => entry
                .files
                .iter()
                .map(|file| file.id + 1)
                .max()
                .unwrap_or(0),
        };
        let (name, base, replacer) = (plan.name(), plan.base, &undoer.replacer);
        let is_link = plan::is_link(plan.was);
        let size = |bytes: &Bytes| bytes.as_deref().map_or(0, |bytes| bytes.len() as u64);
        let sizes = size(&plan.before) + size(&plan.after);
        let begun = contents.as_ref().map_or(0, |contents| contents.end);
        let mut places = [[0; 2]; 2];
        let mut kept = || -> Result<Stored, NotStored> {
            if sizes > *left {
                return Err(NotStored::NotKept(over_budget(replacer.budget())));
            }
            let failed =
                |error: &io::Error| NotStored::NotKept(format!("it could not be stored: {error}"));
            let contents = contents.as_mut().map_err(|error| failed(error))?;
            let mut before = |bytes: &[u8]| {
                let (place, back) = contents.add(bytes)?;
                places[0] = place;
                Ok(back)
            };
            let stored = replacer.store(&name, is_link, base, Storage::By(&mut before))?;
            if let Some(bytes) = &plan.after {
                (places[1], _) = contents.add(bytes).map_err(|error| failed(&error))?;
            }
            Ok(stored)
        };
        let mut bare = false;
        let kept = kept();
        if let (Err(_), Ok(contents)) = (&kept, contents) {
            // A file's contents are stored whole or not at all: a full disk may
            // have ended this in the middle.
            contents.cut(begun);
        }
        let stored = match kept {
            Ok(stored) => {
                *left -= sizes;
                Some(stored)
            }
            Err(NotStored::Changed(_)) => {
                bare = true;
                None
            }
            Err(NotStored::NotKept(_)) if undoer.no_redo => {
                bare = true;
                match replacer.store(&name, is_link, base, Storage::Nowhere) {
                    Ok(stored) => Some(stored),
                    Err(NotStored::Changed(_)) => None,
                    Err(error) => return Err(left_since(error)),
                }
            }
            Err(error) => return Err(left_since(error)),
        };
        let file = FileEntry {
            id,
            at: Some(places),
            path: plan.path.clone(),
            before: plan.before.as_deref().map(Hash::of),
            after: plan.after.as_deref().map(Hash::of),
            mode: plan.mode.map(FileMode::bits),
            was: plan.was.map(FileMode::bits),
            to: plan.to.clone(),
            by: Some(plan.by.clone()),
            hunks: plan.hunks,
            conflicts: u32::try_from(plan.conflicts.len()).unwrap_or(u32::MAX),
            real: plan.real.clone(),
            bare,
        };
        match entry.files.get_mut(at) {
            Some(old) => *old = file,
            None => entry.files.push(file),
        }
        Ok(stored)
    }

    /// Reads the content of a file before (0) or after (1) an undo.
    fn read_content(&self, number: u64, file: &FileEntry, nth: usize) -> io::Result<Vec<u8>> {
        let directory = self.entries.of(number);
        match &file.at {
            Some(places) => contents::read(&directory, places[nth]),
            None => fs::read(directory.join(format!("{}.{}", file.id, OWN[nth]))),
        }
    }

    /// Returns the proof that what a file has now is one of the contents that
    /// the entry has of it; `None` if there is none.
    pub(super) fn stored(&self, entry: &Entry, at: usize, now: Option<Hash>) -> Option<Stored> {
        let file = &entry.files[at];
        let nth = match now {
            None => return Some(Stored::nothing()),
            Some(_) if file.bare => return None,
            now => [file.before, file.after]
                .iter()
                .position(|one| *one == now)?,
        };
        let copy = self.read_content(entry.number, file, nth).ok()?;
        Stored::of(now, &copy)
    }

    /// Returns the contents and modes of a file before and after the undo that
    /// the redo `entry` reverts; `None` if `entry` is an undo.
    pub(super) fn redo_of(
        &self,
        entry: &Entry,
        at: usize,
    ) -> Option<([Bytes; 2], [Option<FileMode>; 2])> {
        let undone = self.entries.read(entry.redo_of?)?;
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
            true => self.entries.remove(entry.number),
            // A full disk may prevent a rewrite of the entry, but not a rename.
            false => {
                let entries = &self.entries;
                entries
                    .write(entry)
                    .or_else(|_| entries.rename(entry.number))
            }
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
        for number in self.entries.numbers() {
            match self.entries.read(number) {
                Some(entry) if entry.state == State::Begun => {
                    left.push(Arc::unwrap_or_clone(entry));
                }
                Some(_) => {}
                // Damaged, or of a newer touchmark. What it keeps stays.
                None if self.entries.is_written(number) => {
                    let directory = self.entries.of(number);
                    tracing::warn!(
                        "undo {number} cannot be read; its contents stay in {}",
                        directory.display()
                    );
                }
                // The entry is written last, so no file was written yet.
                None => {
                    let _gone = self.entries.remove(number);
                }
            }
        }
        left
    }

    /// Removes the undos of a session's changes, or all undos if `session` is
    /// `None`, since they contain files' contents (SEC-3).
    pub(crate) fn forget(&self, session: Option<&SessionId>) {
        for number in self.entries.numbers() {
            let is_of = |author: &Author| author.session.as_ref() == session;
            let is_meant = match self.entries.read(number) {
                Some(entry) => session.is_none() || entry.authors.iter().any(is_of),
                // One that cannot be read may have any session's contents.
                None => self.entries.is_written(number),
            };
            if is_meant && let Err(error) = self.entries.remove(number) {
                let directory = self.entries.of(number);
                tracing::warn!("{}: {error}", directory.display());
            }
        }
    }

    /// Returns which changes of files were undos and redos.
    pub(crate) fn recorded(&self) -> Arc<Recorded> {
        self.entries.recorded()
    }

    /// Returns the undo named `name`. Without a name, returns the newest undo
    /// that no redo has reverted.
    pub(super) fn entry(&self, name: Option<&str>) -> Result<Entry, Error> {
        let all: Vec<Arc<Entry>> = self.entries.kept().collect();
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
        found.map(|entry| Entry::clone(entry)).ok_or_else(|| {
            let why = match name {
                Some(_) => "there is no such undo",
                None => "there is nothing to redo: no undo is kept that was not redone",
            };
            Error::new(ErrorCode::NotFound, why).hint("`undo/list` has those that are kept")
        })
    }

    /// Returns a file's contents before and after the undo.
    pub(super) fn contents(&self, entry: &Entry, at: usize) -> Result<[Bytes; 2], Error> {
        let file = &entry.files[at];
        let read = |nth: usize, hash: Option<Hash>| -> io::Result<Bytes> {
            let Some(hash) = hash else { return Ok(None) };
            let bytes = self.read_content(entry.number, file, nth)?;
            if Hash::of(&bytes) != hash {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is damaged"));
            }
            Ok(Some(bytes.into()))
        };
        if file.bare {
            let cause = "its contents were not kept when it was written (`noRedo`)";
            return Err(Error::path(ErrorCode::NotKept, &file.path, cause));
        }
        let both = || Ok([read(0, file.before)?, read(1, file.after)?]);
        both().map_err(|error: io::Error| not_kept(&error))
    }

    /// Returns the rows of `undo/list`, the newest undo first.
    pub(super) fn rows(&self) -> Vec<UndoRow> {
        let rows = self.entries.kept().rev();
        rows.map(|entry| UndoRow {
            undo: undo_name(entry.number),
            time: entry.time,
            what: entry.what.clone(),
            redo_of: entry.redo_of.map(undo_name),
            paths: entry.files.iter().map(|file| file.path.clone()).collect(),
        })
        .collect()
    }

    /// Writes an entry, after its contents.
    fn write_with(&self, entry: &Entry, contents: &io::Result<Contents>) -> io::Result<()> {
        if let (true, Ok(contents)) = (self.entries.durable, contents) {
            contents.sync()?;
        }
        self.entries.write(entry)
    }
}

/// The cause where a file has another content than the undo was computed for.
pub(super) const SAVED_SINCE: &str = "another process has saved it in the meantime";

/// Returns the outcome of a file whose present content is not stored.
pub(super) fn left_since(error: NotStored) -> Left {
    match error {
        NotStored::NotKept(cause) => (UndoOutcome::NotKept, cause),
        NotStored::Changed(_) => (UndoOutcome::Changed, SAVED_SINCE.into()),
        NotStored::Failed(error) => failed(error),
    }
}

/// Returns the outcome of a file that could not be written. Where a symlink
/// replaced the file, the change stays as a conflict.
pub(super) fn failed(error: Error) -> Left {
    match error.data.file_type.as_deref() {
        Some("symlink") => (UndoOutcome::Conflict, error.message),
        _ if error.code == ErrorCode::NotKept => (UndoOutcome::NotKept, error.message),
        _ => (UndoOutcome::Failed, error.message),
    }
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

    use touchmark_proto::RelPath;

    use super::super::entries::ENTRY;
    use super::*;

    /// An undo of no file that is about to be written.
    fn begun(journal: &Journal) -> Entry {
        numbered(journal, 1)
    }

    fn numbered(journal: &Journal, number: u64) -> Entry {
        fs::create_dir(journal.entries.of(number)).unwrap();
        Entry {
            number,
            time: 1,
            what: "all".into(),
            redo_of: None,
            state: State::Begun,
            authors: Vec::new(),
            files: Vec::new(),
        }
    }

    #[test]
    fn undo4_an_undo_whose_end_cannot_be_written_is_done() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(state.path(), false).unwrap();
        let mut entry = begun(&journal);
        let path = RelPath::new(b"f").unwrap();
        let file = serde_json::json!({"id": 0, "path": path, "before": null, "after": null});
        entry.files.push(serde_json::from_value(file).unwrap());
        journal.entries.write(&entry).unwrap();
        assert_eq!(journal.left().len(), 1);
        // As on a full disk, the file next to the entry cannot be written.
        fs::create_dir(journal.entries.of(entry.number).join("entry.part")).unwrap();
        journal.end(&mut entry);
        assert_eq!(journal.left(), []);
        assert_eq!(journal.rows().len(), 1);
    }

    #[test]
    fn sec3_a_forgotten_undo_is_forgotten_in_memory_too() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(state.path(), false).unwrap();
        let mut entry = begun(&journal);
        journal.entries.write(&entry).unwrap();
        assert_eq!(journal.left().len(), 1);
        entry.state = State::Done;
        journal.entries.write(&entry).unwrap();
        assert_eq!((journal.left().len(), journal.rows().len()), (0, 1));
        journal.forget(None);
        assert_eq!(journal.rows(), []);
        assert!(journal.entries.read(1).is_none());
    }

    #[test]
    fn undo4_older_undos_stay_on_record_without_their_contents() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(state.path(), false).unwrap();
        let contents = |number| journal.entries.of(number).join("contents");
        for number in 1..=103 {
            let mut entry = numbered(&journal, number);
            if number > 1 {
                entry.state = State::Done;
            }
            journal.entries.write(&entry).unwrap();
            fs::write(contents(number), "mine").unwrap();
        }
        journal.entries.prune();
        // The first one never ended.
        assert_eq!(journal.entries.numbers(), (2..=103).collect::<Vec<u64>>());
        let stored: Vec<u64> = (1..=103).filter(|n| contents(*n).exists()).collect();
        assert_eq!(stored, (4..=103).collect::<Vec<u64>>());
        assert_eq!(journal.rows().last().unwrap().undo, "u4");
        assert!(journal.entry(Some("u3")).is_err());
    }

    #[test]
    fn undo4_an_entry_that_cannot_be_read_stays_with_its_contents() {
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open(state.path(), false).unwrap();
        for (number, text) in [
            (1, "{\"number\":1"),
            (2, ""),
            (3, "{\"state\":\"archived\"}"),
        ] {
            fs::create_dir(journal.entries.of(number)).unwrap();
            fs::write(journal.entries.of(number).join(ENTRY), text).unwrap();
            fs::write(journal.entries.of(number).join("0.before"), "mine").unwrap();
        }
        // Its entry was not written, so nothing was.
        fs::create_dir(journal.entries.of(4)).unwrap();
        fs::write(journal.entries.of(4).join("0.before"), "now").unwrap();
        assert_eq!(journal.left(), []);
        assert_eq!(journal.entries.numbers(), [1, 2, 3]);
        assert_eq!(
            fs::read(journal.entries.of(1).join("0.before")).unwrap(),
            b"mine"
        );
    }
}
