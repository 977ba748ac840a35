//! Facts that were decided and not stored, since commits fail (LOSS-3). Lookups
//! find them here, so that answers stay right meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use touchmark_engine::Record;

/// The facts, in their order; empty while commits succeed.
#[derive(Default)]
pub(super) struct Unstored(Mutex<Vec<Record>>);

impl Unstored {
    /// Returns the number of the newest fact, or 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.lock().last().map_or(0, |record| record.n)
    }

    /// Appends facts, which are newer than all others.
    pub(super) fn extend(&self, records: impl IntoIterator<Item = Record>) {
        self.lock().extend(records);
    }

    /// Removes all facts, since they are stored now. Called after the commit,
    /// so that a lookup that reads here first and the file afterwards misses
    /// none.
    pub(super) fn clear(&self) {
        *self.lock() = Vec::new();
    }

    /// Returns the facts that match, oldest first.
    pub(super) fn find(&self, wanted: impl Fn(&Record) -> bool) -> Vec<Record> {
        self.lock()
            .iter()
            .filter(|record| wanted(record))
            .cloned()
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Record>> {
        // A poisoned lock is usable: each change is complete before anything
        // can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
