//! The upkeep thread: checkpoints of SQLite's log, and the search for versions
//! to prune. No request waits for either.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::error::StoreError;
use super::message::Message;
use super::message::Prune;
use super::schema::{self, first_at, int, meta, uint};
use crate::failpoint;

/// The log is restarted even while turns arrive, if it has more pages than this
/// (32 MiB). SQLite alone never restarts a log in constant use.
const LARGEST_LOG: i64 = 8_192;

/// The number of versions deleted in one transaction.
const DELETIONS: usize = 500;

/// A message to the thread.
pub(super) enum Work {
    /// Something was written to the store.
    Written,
    /// Find versions to drop.
    Prune(Prune),
}

/// Notifies the thread of writes, with at most one message until it has
/// reacted.
#[derive(Clone)]
pub(super) struct Nudge {
    told: Arc<AtomicBool>,
    upkeep: Sender<Work>,
}

impl Nudge {
    pub(super) fn new(upkeep: Sender<Work>) -> Self {
        Self {
            told: Arc::default(),
            upkeep,
        }
    }

    pub(super) fn written(&self) {
        if !self.told.swap(true, Ordering::AcqRel) {
            // The thread runs longer than the writer.
            let _ = self.upkeep.send(Work::Written);
        }
    }
}

/// The state of SQLite's log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// Empty.
    Clean,
    /// Written to since the last checkpoint.
    Written,
    /// Copied into the file, and not written to since.
    Copied,
}

pub(super) struct Upkeep {
    path: PathBuf,
    /// Opened when it is first needed, since a start waits for this thread to
    /// exist and for nothing that it does.
    connection: OnceCell<Connection>,
    pace: Duration,
    work: Receiver<Work>,
    told: Arc<AtomicBool>,
    writer: Sender<Message>,
}

impl Upkeep {
    pub(super) fn new(
        path: &Path,
        pace: Duration,
        work: Receiver<Work>,
        nudge: &Nudge,
        writer: Sender<Message>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            connection: OnceCell::new(),
            pace,
            work,
            told: Arc::clone(&nudge.told),
            writer,
        }
    }

    fn connection(&self) -> Result<&Connection, StoreError> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let connection = schema::connect(&self.path, OpenFlags::empty())?;
        // Short, since emptying the log waits for readers while the writer is
        // locked out.
        connection.busy_timeout(Duration::from_millis(50))?;
        Ok(self.connection.get_or_init(|| connection))
    }

    /// Runs until the channel is closed; then empties the log.
    pub(super) fn run(self) {
        let mut log = Log::Clean;
        loop {
            let work = match log {
                // There is nothing to do: no wake-ups.
                Log::Clean => self.work.recv().map_err(|_| RecvTimeoutError::Disconnected),
                _ => self.work.recv_timeout(self.pace),
            };
            log = match work {
                Ok(Work::Written) => Log::Written,
                Ok(Work::Prune(prune)) => {
                    if let Err(error) = self.prune(prune) {
                        tracing::debug!(%error, "pruning failed");
                    }
                    log
                }
                Err(RecvTimeoutError::Timeout) => self.advance(log),
                Err(RecvTimeoutError::Disconnected) => break,
            };
        }
        self.checkpoint("PASSIVE");
        self.checkpoint("TRUNCATE");
    }

    /// Makes the next checkpoint, after a pause in the writes. Returns the
    /// log's new state.
    pub(super) fn advance(&self, log: Log) -> Log {
        if log == Log::Written {
            // Before the checkpoint, so that a write during it notifies again.
            self.told.store(false, Ordering::Release);
            // Copies without blocking the writer.
            if self.checkpoint("PASSIVE") > LARGEST_LOG {
                // A short second pass copies what was written during the long
                // first one, so that the writer is blocked only briefly. The
                // log file keeps its length, since truncating so much takes
                // longer than the passes.
                self.checkpoint("PASSIVE");
                self.checkpoint("RESTART");
            }
            Log::Copied
        } else {
            // Everything is copied, so this blocks the writer only briefly.
            self.checkpoint("TRUNCATE");
            Log::Clean
        }
    }

    /// Makes a checkpoint. Returns the number of pages in the log.
    fn checkpoint(&self, mode: &str) -> i64 {
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        failpoint::pass("store: about to checkpoint");
        // Without space, or while readers prevent it, the log keeps everything
        // and the next checkpoint copies it.
        let pages = self
            .connection()
            .and_then(|connection| Ok(connection.query_row(&pragma, [], |row| row.get(1))?));
        failpoint::pass("store: a checkpoint is made");
        pages.unwrap_or_else(|error| {
            tracing::debug!(%error, mode, "checkpoint");
            0
        })
    }

    /// Returns whether a version is too old or a path has too many. Usually
    /// not; the first fact and one index are enough to find that out.
    fn is_any_to_prune(&self, prune: &Prune) -> Result<bool, StoreError> {
        let connection = self.connection()?;
        // Facts are in the order of their times.
        let oldest: Option<i64> = connection
            .prepare_cached("SELECT time FROM fact WHERE path IS NOT NULL ORDER BY n LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        if oldest.is_none_or(|oldest| uint(oldest) < prune.older_than) {
            return Ok(oldest.is_some());
        }
        Ok(connection
            .prepare_cached(
                "SELECT 1 FROM fact WHERE path IS NOT NULL AND kind IN (1, 2)
                 GROUP BY path HAVING count(*) > ?1 LIMIT 1",
            )?
            .exists([int(prune.keep_per_path)])?)
    }

    /// Finds the facts that are kept as long as versions and are older than the
    /// oldest versions may be, and sends them to the writer.
    fn prune_lasting(&self, prune: &Prune, covered: u64) -> Result<(), StoreError> {
        let mut statement = self.connection()?.prepare_cached(
            "SELECT n FROM fact WHERE kind = 3 AND n <= ?1 AND time < ?2 ORDER BY n LIMIT ?3",
        )?;
        // The rest is found next time.
        let limit = i64::try_from(DELETIONS).unwrap_or(i64::MAX);
        let found = statement.query_map((int(covered), int(prune.older_than), limit), |row| {
            row.get::<_, i64>(0)
        })?;
        let batch = found.collect::<Result<Vec<_>, _>>()?;
        if !batch.is_empty() {
            let _ = self.writer.send(Message::Delete(batch));
        }
        Ok(())
    }

    /// Finds the facts about versions that are older than the oldest versions
    /// may be, and sends them to the writer: who wrote their lines, what git
    /// brought, and which names stand for which files.
    fn prune_about(&self, prune: &Prune, covered: u64) -> Result<(), StoreError> {
        let connection = self.connection()?;
        let first = first_at(connection, prune.older_than)?;
        let mut statement = connection.prepare_cached(
            "SELECT n FROM fact WHERE n <= ?1 AND n < ?2 AND kind IN (4, 5, 6) ORDER BY n LIMIT ?3",
        )?;
        // The rest is found next time.
        let limit = i64::try_from(DELETIONS).unwrap_or(i64::MAX);
        let found =
            statement.query_map((int(covered), first, limit), |row| row.get::<_, i64>(0))?;
        let batch = found.collect::<Result<Vec<_>, _>>()?;
        if !batch.is_empty() {
            let _ = self.writer.send(Message::Delete(batch));
        }
        Ok(())
    }

    /// Finds the versions to drop and sends them to the writer. Versions that
    /// arrive meanwhile do not change the result.
    pub(super) fn prune(&self, prune: Prune) -> Result<(), StoreError> {
        let connection = self.connection()?;
        // Facts after the snapshot are needed for the next start.
        let covered = meta::<i64>(connection, "snapshot")?.map_or(0, uint);
        self.prune_lasting(&prune, covered)?;
        self.prune_about(&prune, covered)?;
        if !self.is_any_to_prune(&prune)? {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(
            "SELECT n FROM (
                SELECT n, time,
                    row_number() OVER (PARTITION BY path ORDER BY n DESC) AS newer,
                    max(n) FILTER (WHERE n <= ?1) OVER (PARTITION BY path) AS base
                FROM fact WHERE path IS NOT NULL AND kind IN (1, 2))
             WHERE n < base AND (newer > ?2 OR time < ?3)
             ORDER BY n",
        )?;
        let found = statement.query_map(
            (
                int(prune.floor.min(covered)),
                int(prune.keep_per_path),
                int(prune.older_than),
            ),
            |row| row.get::<_, i64>(0),
        )?;
        let mut batch = Vec::new();
        for n in found {
            batch.push(n?);
            if batch.len() == DELETIONS {
                let _ = self
                    .writer
                    .send(Message::Delete(std::mem::take(&mut batch)));
            }
        }
        if !batch.is_empty() {
            let _ = self.writer.send(Message::Delete(batch));
        }
        Ok(())
    }
}
