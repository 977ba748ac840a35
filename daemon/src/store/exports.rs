//! The log as a queue of facts that are exported (TEL-2). Only the position in
//! it is stored: the number of the newest fact that the receiver has
//! acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use touchmark_engine::{Fact, Record};

use super::error::StoreError;
use super::load::record;
use super::message::Message;
use super::reader::{Reader, Readers};
use super::schema::{self, OTHER, int, meta, set_meta, uint};
use super::seal;

/// In `meta`: the number of the newest fact that was acknowledged. Absent
/// while nothing is exported.
const EXPORTED: &str = "exported";

/// In `meta`: what the exporter stores with it, with a checksum.
const STATE: &str = "exported_state";

/// In `meta`: the number of facts that were dropped before they were exported.
const DROPPED: &str = "exported_dropped";

/// The most facts that a snapshot covers and that stay since they are still to
/// be exported.
const MOST_HELD: u64 = 100_000;

/// Counts the facts that are dropped from the log before they were exported.
#[derive(Clone)]
pub(super) struct Dropped {
    /// Their number since the first export.
    pub(super) count: Arc<AtomicU64>,
    /// Returns whether a fact is exported at all.
    pub(super) is_exported: fn(&Fact) -> bool,
}

/// How far facts were exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of the newest fact that was acknowledged.
    pub n: u64,
    /// What else the exporter stores, in its own format.
    pub state: Vec<u8>,
}

/// The queue of one store. It stays usable in another thread.
#[derive(Clone)]
pub struct Exports {
    readers: Readers,
    dropped: Arc<AtomicU64>,
}

impl Exports {
    pub(super) fn new(readers: Readers, dropped: Arc<AtomicU64>) -> Self {
        Self { readers, dropped }
    }

    /// Opens a read-only connection, for facts and their contents.
    ///
    /// # Errors
    /// [`StoreError::Storage`] if the system refuses.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        self.readers.open()
    }

    /// Stores how far facts were exported, when nothing else is to be stored.
    pub fn advance(&self, progress: Progress) {
        // The writer no longer runs while the store is being shut down.
        let _ = self.readers.writer.send(Message::Exported(Some(progress)));
    }

    /// Forgets the position: nothing is exported any more.
    pub fn end(&self) {
        // As above.
        let _ = self.readers.writer.send(Message::Exported(None));
    }

    /// Returns the number of facts that were dropped before they were
    /// exported, since the first export.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Reader {
    /// Returns how far facts were exported. `None` if none are.
    ///
    /// # Errors
    /// [`StoreError::Storage`].
    pub fn progress(&self) -> Result<Option<Progress>, StoreError> {
        let Some(connection) = self.connection() else {
            return Ok(None);
        };
        let Some(n) = meta::<i64>(connection, EXPORTED)?.map(uint) else {
            return Ok(None);
        };
        let state: Option<Vec<u8>> = meta(connection, STATE)?;
        // A position without its checksum is none.
        let state = state.and_then(|state| seal::open(n, 0, &state).map(<[u8]>::to_vec));
        Ok(state.map(|state| Progress { n, state }))
    }

    /// Calls `each` with the stored facts after fact `n`, oldest first, until
    /// it returns false. Facts that cannot be read are left out.
    ///
    /// # Errors
    /// [`StoreError::Storage`].
    pub fn stored_after(
        &self,
        n: u64,
        mut each: impl FnMut(Record) -> bool,
    ) -> Result<(), StoreError> {
        let Some(connection) = self.connection() else {
            return Ok(());
        };
        let mut statement =
            connection.prepare_cached("SELECT n, time, body FROM fact WHERE n > ?1 ORDER BY n")?;
        let mut rows = statement.query([int(n)])?;
        while let Some(row) = rows.next()? {
            if let Ok(record) = record(row)?
                && !each(record)
            {
                break;
            }
        }
        Ok(())
    }
}

/// Stores how far facts were exported; with `None`, removes it.
pub(super) fn note(
    connection: &mut Connection,
    progress: Option<&Progress>,
    dropped: &AtomicU64,
) -> Result<(), rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    match progress {
        Some(Progress { n, state }) => {
            set_meta(&transaction, EXPORTED, int(*n))?;
            set_meta(&transaction, STATE, seal::close(*n, 0, state.clone()))?;
        }
        None => {
            transaction
                .prepare_cached("DELETE FROM meta WHERE key IN (?1, ?2, ?3)")?
                .execute([EXPORTED, STATE, DROPPED])?;
        }
    }
    transaction.commit()?;
    if progress.is_none() {
        dropped.store(0, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns the number of the last fact that may be dropped, of those up to
/// `covered`: what is still to be exported stays, within a limit.
pub(super) fn held(connection: &Connection, covered: u64) -> Result<u64, rusqlite::Error> {
    let exported = meta::<i64>(connection, EXPORTED)?.map(uint);
    let least = covered.saturating_sub(MOST_HELD);
    Ok(exported.map_or(covered, |n| n.max(least).min(covered)))
}

impl Dropped {
    /// Counts the facts after `from` and up to `to`, without versions, that were to
    /// be exported and were not yet.
    pub(super) fn between(
        &self,
        connection: &Connection,
        from: u64,
        to: u64,
    ) -> Result<u64, rusqlite::Error> {
        let Some(exported) = meta::<i64>(connection, EXPORTED)?.map(uint) else {
            return Ok(0);
        };
        let from = from.max(exported);
        if from >= to {
            return Ok(0);
        }
        let mut statement = connection.prepare_cached(
            "SELECT n, time, body FROM fact WHERE n > ?1 AND n <= ?2 AND kind = ?3",
        )?;
        let mut rows = statement.query((int(from), int(to), OTHER))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            // What cannot be read is moved aside and counted there.
            if let Ok(Ok(record)) = record(row) {
                count += u64::from((self.is_exported)(&record.fact));
            }
        }
        Ok(count)
    }

    /// Counts those of some versions and baselines that were to be exported and
    /// were not yet.
    pub(super) fn of(
        &self,
        connection: &Connection,
        facts: &[i64],
    ) -> Result<u64, rusqlite::Error> {
        let Some(exported) = meta::<i64>(connection, EXPORTED)?.map(uint) else {
            return Ok(0);
        };
        let mut statement =
            connection.prepare_cached("SELECT n, time, body FROM fact WHERE n = ?1")?;
        let mut count = 0;
        for n in facts.iter().filter(|n| uint(**n) > exported) {
            let mut rows = statement.query([n])?;
            if let Some(row) = rows.next()?
                && let Ok(Ok(record)) = record(row)
            {
                count += u64::from((self.is_exported)(&record.fact));
            }
        }
        Ok(count)
    }
}

/// Adds to the stored number of facts that were dropped before they were
/// exported.
pub(super) fn count(connection: &Connection, more: u64) -> Result<(), rusqlite::Error> {
    if more > 0 {
        let before = dropped(connection)?;
        set_meta(connection, DROPPED, int(before.saturating_add(more)))?;
    }
    Ok(())
}

/// Returns the stored number of facts that were dropped before they were
/// exported.
pub(super) fn dropped(connection: &Connection) -> Result<u64, rusqlite::Error> {
    Ok(meta::<i64>(connection, DROPPED)?.map_or(0, uint))
}

/// Returns whether a position is stored.
pub(super) fn are_under_way(connection: &Connection) -> Result<bool, rusqlite::Error> {
    Ok(meta::<i64>(connection, EXPORTED)?.is_some())
}
