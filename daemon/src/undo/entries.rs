//! The entries of the undo journal, on disk and in memory.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::contents;
use crate::past::entry::{Entry, State};
use crate::past::undos::Recorded;
use crate::system::open::replace_private;

/// The number of undos, the newest ones, that are kept with their contents.
const KEPT: usize = 100;

/// The maximum number of older undos whose entries are kept without contents.
/// They cannot be reverted, but what they wrote still counts as an undo.
const KNOWN: usize = 1_000;

/// The maximum number of files in the entries that are held in memory, and in
/// entries that are kept without contents.
const MOST_HELD: usize = 20_000;

/// The file name of an undo's entry.
pub(super) const ENTRY: &str = "entry.json";

/// The file name of the entry of a completed undo whose entry could not be
/// rewritten. An entry with this name counts as [`State::Done`], whatever its
/// `state` is.
const DONE: &str = "done.json";

/// The directories of undos, by their numbers, each with its entry.
#[derive(Debug)]
pub(super) struct Entries {
    directory: PathBuf,
    /// Whether an undo has to survive a loss of power.
    pub(super) durable: bool,
    /// What all entries have written; `None` if entries were changed since.
    recorded: Mutex<Option<Arc<Recorded>>>,
    /// The entries that were read or written last, by their numbers. Only this
    /// daemon writes them.
    held: Mutex<HashMap<u64, Arc<Entry>>>,
}

impl Entries {
    /// Returns the entries below a directory.
    pub(super) fn new(directory: PathBuf, durable: bool) -> Self {
        Self {
            directory,
            durable,
            recorded: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Returns which changes of files were undos and redos.
    pub(super) fn recorded(&self) -> Arc<Recorded> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recorded.get_or_insert_with(|| {
            let all: Vec<Arc<Entry>> = self.all().collect();
            Arc::new(Recorded::of(&all))
        });
        Arc::clone(known)
    }

    /// Returns all entries that can be read, in ascending order.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Entry>> {
        let numbers = self.numbers().into_iter();
        numbers.filter_map(|number| self.read(number))
    }

    /// Returns the numbers of all undos, in ascending order.
    pub(super) fn numbers(&self) -> Vec<u64> {
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

    /// Returns the directory of an undo.
    pub(super) fn of(&self, number: u64) -> PathBuf {
        self.directory.join(number.to_string())
    }

    /// Returns an undo's entry; `None` if there is none that can be read.
    pub(super) fn read(&self, number: u64) -> Option<Arc<Entry>> {
        if let Some(entry) = self.held().get(&number) {
            return Some(Arc::clone(entry));
        }
        let directory = self.of(number);
        let read = |name: &str| -> Option<Entry> {
            serde_json::from_slice(&fs::read(directory.join(name)).ok()?).ok()
        };
        let done = |entry: Entry| Entry {
            state: State::Done,
            ..entry
        };
        let entry = Arc::new(read(ENTRY).or_else(|| read(DONE).map(done))?);
        self.hold(Arc::clone(&entry));
        Some(entry)
    }

    /// Returns whether an undo's entry was written, whether or not it can be
    /// read.
    pub(super) fn is_written(&self, number: u64) -> bool {
        let directory = self.of(number);
        [ENTRY, DONE]
            .iter()
            .any(|name| !matches!(directory.join(name).try_exists(), Ok(false)))
    }

    /// Writes an entry into the directory of its undo, in place of an earlier
    /// one.
    pub(super) fn write(&self, entry: &Entry) -> io::Result<()> {
        self.changed(entry.number);
        let directory = self.of(entry.number);
        let bytes = serde_json::to_vec(entry)?;
        replace_private(&directory.join(ENTRY), &bytes, self.durable)?;
        if self.durable {
            let sync = |directory: &Path| File::open(directory)?.sync_data();
            sync(&directory)?;
            sync(&self.directory)?;
        }
        self.hold(Arc::new(entry.clone()));
        Ok(())
    }

    /// Marks an undo as done by renaming its entry, which works on a full disk
    /// too.
    pub(super) fn rename(&self, number: u64) -> io::Result<()> {
        self.changed(number);
        let directory = self.of(number);
        fs::rename(directory.join(ENTRY), directory.join(DONE))
    }

    /// Removes an undo, with the contents of its files.
    pub(super) fn remove(&self, number: u64) -> io::Result<()> {
        let removed = fs::remove_dir_all(self.of(number));
        self.changed(number);
        removed
    }

    /// Returns the entries that are kept with their contents, in ascending
    /// order.
    pub(super) fn kept(&self) -> impl DoubleEndedIterator<Item = Arc<Entry>> {
        let mut numbers = self.numbers();
        let newest = numbers.split_off(numbers.len().saturating_sub(KEPT));
        newest.into_iter().filter_map(|number| self.read(number))
    }

    /// Removes the contents of undos beyond [`KEPT`], and the oldest of these
    /// undos with their entries.
    pub(super) fn prune(&self) {
        let numbers = self.numbers();
        let older = &numbers[..numbers.len().saturating_sub(KEPT)];
        let mut files = 0;
        for (nth, number) in older.iter().rev().enumerate() {
            // Without its contents, an entry is useful only if it can be read
            // and its undo ended. An older touchmark stored each content in a
            // separate file; its undos are removed with their entries.
            let ended = self
                .read(*number)
                .filter(|entry| entry.state == State::Done)
                .filter(|entry| {
                    entry
                        .files
                        .iter()
                        .all(|file| file.at.is_some() || file.bare)
                });
            files += ended.as_ref().map_or(0, |entry| entry.files.len());
            let _gone = match ended.is_some() && nth < KNOWN && files <= MOST_HELD {
                true => contents::remove(&self.of(*number)),
                false => self.remove(*number),
            };
        }
    }

    /// Notes that an entry is no longer as it is in memory.
    fn changed(&self, number: u64) {
        self.held().remove(&number);
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Holds an entry in memory, if not too many are there.
    fn hold(&self, entry: Arc<Entry>) {
        let mut held = self.held();
        held.remove(&entry.number);
        let files: usize = held.values().map(|entry| entry.files.len()).sum();
        if files + entry.files.len() <= MOST_HELD {
            held.insert(entry.number, entry);
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
