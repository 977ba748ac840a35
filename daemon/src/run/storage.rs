//! The loop's view of the store.

use std::collections::BTreeMap;

use touchmark_proto::Error;

use super::snapshot;
use crate::context::storage;
use crate::fill::Contents;
use crate::store::{Reader, Store};

/// The store, and what is known of its state.
pub(super) struct Storage {
    pub(super) store: Store,
    /// The loop's own connection for reading; `None` until it is needed.
    log: Option<Reader>,
    /// What was lost when the store was opened; `None` if nothing was.
    pub(super) loss: Option<String>,
    /// Whether records on which the state rests were left out at this start.
    pub(super) left_out: bool,
    /// Why facts cannot be stored at the moment (LOSS-3); `None` if they can.
    pub(super) trouble: Option<String>,
    /// What a lookup found damaged; `None` if nothing.
    pub(super) malformed: Option<String>,
    /// The turns whose facts could not be stored in the first attempt, and why.
    pub(super) failed_turns: BTreeMap<u64, String>,
    pub(super) next_snapshot: snapshot::Next,
    /// The number of stats in the last snapshot.
    pub(super) stamps_in_snapshot: u64,
}

impl Storage {
    pub(super) fn new(
        store: Store,
        loss: Option<String>,
        left_out: bool,
        trouble: Option<String>,
        next_snapshot: snapshot::Next,
    ) -> Self {
        Self {
            store,
            log: None,
            loss,
            left_out,
            trouble,
            malformed: None,
            failed_turns: BTreeMap::new(),
            next_snapshot,
            stamps_in_snapshot: 0,
        }
    }

    /// Returns the log, open for reading.
    ///
    /// # Errors
    /// `storage`.
    pub(super) fn log(&mut self) -> Result<&Reader, Error> {
        if self.log.is_none() {
            let log = self.store.readers().open();
            self.log = log
                .inspect_err(|error| tracing::warn!("the log cannot be read: {error}"))
                .ok();
        }
        let log = self.log.as_ref();
        log.ok_or_else(|| storage("the log cannot be read"))
    }

    /// Returns the stored contents. Without a log there are none.
    pub(super) fn contents(&mut self) -> Contents<'_> {
        Contents::new(self.log().ok())
    }

    /// Returns the cause if a turn could not be stored. The turns before it are
    /// forgotten.
    pub(super) fn failed(&mut self, turn: u64) -> Option<String> {
        self.failed_turns = self.failed_turns.split_off(&turn);
        self.failed_turns.get(&turn).cloned()
    }

    /// Stores what the threads have not stored yet, and ends them.
    pub(super) fn close(self) {
        drop(self.log);
        self.store.close();
    }
}
