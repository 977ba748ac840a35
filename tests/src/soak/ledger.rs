//! What users have saved, and what the daemon has acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A write that was answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    /// The session that wrote.
    pub session: String,
    /// The hash of what it wrote.
    pub hash: String,
}

/// One file's names, lines and writes.
#[derive(Debug)]
pub(super) struct Entry {
    /// The names that the file has had, the present one last.
    pub names: Vec<String>,
    /// The lines that users saved, and have not taken away themselves.
    pub lines: BTreeSet<String>,
    /// The acknowledged writes since the last comparison.
    pub writes: BTreeSet<Written>,
}

impl Entry {
    /// Returns the file's present name.
    pub(super) fn name(&self) -> String {
        self.names.last().cloned().unwrap_or_default()
    }
}

/// All files. A user holds a file's entry from reading the file to the end of
/// the save, so that no user takes away another one's lines.
#[derive(Debug)]
pub(super) struct Ledger(BTreeMap<&'static str, Mutex<Entry>>);

impl Ledger {
    pub(super) fn new(files: &[&'static str]) -> Self {
        let entry = |name: &&'static str| {
            let names = vec![(*name).to_owned()];
            let (lines, writes) = Default::default();
            let entry = Entry {
                names,
                lines,
                writes,
            };
            (*name, Mutex::new(entry))
        };
        Self(files.iter().map(entry).collect())
    }

    /// Returns the entry of a file, by its first name.
    pub(super) fn of(&self, path: &str) -> MutexGuard<'_, Entry> {
        let entry = self.0.get(path).expect("a file of the ledger");
        entry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
