//! Facts that were decided and are not stored, since commits fail (LOSS-3):
//! lookups find them here, so that queries stay right meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use touchmark_engine::Record;

/// In their order; empty as long as commits work.
#[derive(Default)]
pub(super) struct Unstored(Mutex<Vec<Record>>);

impl Unstored {
    /// The number of the newest one, 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.lock().last().map_or(0, |record| record.n)
    }

    /// More of them, newer than all others.
    pub(super) fn extend(&self, records: impl IntoIterator<Item = Record>) {
        self.lock().extend(records);
    }

    /// All are stored. Called after the commit: whoever looks here first and
    /// into the file afterwards misses none.
    pub(super) fn clear(&self) {
        *self.lock() = Vec::new();
    }

    /// Those that somebody looks for, oldest first.
    pub(super) fn find(&self, wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
        self.lock()
            .iter()
            .filter(|record| wanted(record))
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        // Every change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
