//! The upkeep thread: checkpoints of SQLite's log, and the search for
//! versions to prune. Both are off the path of any request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use super::Prune;
use super::error::StoreError;
use super::schema::{self, int, meta, uint};
use super::writer::Message;
use crate::failpoint;

/// The log is begun anew even while turns come, if it has more pages than
/// this (32 MiB); a busy log is otherwise never begun anew.
const LARGEST_LOG: i64 = 8_192;

/// So many versions are deleted in one transaction.
const DELETIONS: usize = 500;

/// What the thread is asked.
pub(super) enum Work {
    /// Something was written.
    Written,
    /// Find versions to drop.
    Prune(Prune),
}

/// Tells the thread that something was written, without a message per commit.
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
            // The thread outlives the writer.
            let _ = self.upkeep.send(Work::Written);
        }
    }
}

/// Where the log stands.
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
    connection: Connection,
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
    ) -> Result<Self, StoreError> {
        let connection = schema::connect(path, OpenFlags::empty())?;
        // Emptying the log waits for readers with the writer locked out.
        connection.busy_timeout(Duration::from_millis(50))?;
        Ok(Self {
            connection,
            pace,
            work,
            told: Arc::clone(&nudge.told),
            writer,
        })
    }

    /// Runs until nobody can ask any more; then the log is emptied.
    pub(super) fn run(self) {
        let mut log = Log::Clean;
        loop {
            let work = match log {
                // Nothing to do: no wake-ups.
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

    /// The next checkpoint, after the log rested.
    pub(super) fn advance(&self, log: Log) -> Log {
        if log == Log::Written {
            // Before the checkpoint: what is written during it nudges again.
            self.told.store(false, Ordering::Release);
            // Copies without holding up the writer.
            if self.checkpoint("PASSIVE") > LARGEST_LOG {
                // What came during the long first pass is copied by a short
                // second one, so that little is left while the writer waits.
                // The file keeps its length: to cut so much off takes the
                // system longer than all of the rest.
                self.checkpoint("PASSIVE");
                self.checkpoint("RESTART");
            }
            Log::Copied
        } else {
            // Everything is copied, so this holds the writer for a moment.
            self.checkpoint("TRUNCATE");
            Log::Clean
        }
    }

    /// Says how many pages the log has.
    fn checkpoint(&self, mode: &str) -> i64 {
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        failpoint::pass("store: about to checkpoint");
        // No room, or readers in the way: the log keeps everything, and the
        // next checkpoint finds it.
        let pages = self.connection.query_row(&pragma, [], |row| row.get(1));
        failpoint::pass("store: a checkpoint is made");
        pages.unwrap_or_else(|error| {
            tracing::debug!(%error, mode, "checkpoint");
            0
        })
    }

    /// Whether some version is too old, or a path has too many. Mostly not,
    /// and a look at the first fact and at one index is enough to know.
    fn is_any_to_prune(&self, prune: &Prune) -> Result<bool, rusqlite::Error> {
        // Facts are in the order of their times.
        let oldest: Option<i64> = self
            .connection
            .prepare_cached("SELECT time FROM fact WHERE path IS NOT NULL ORDER BY n LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()?;
        if oldest.is_none_or(|oldest| uint(oldest) < prune.older_than) {
            return Ok(oldest.is_some());
        }
        self.connection
            .prepare_cached(
                "SELECT 1 FROM fact WHERE path IS NOT NULL
                 GROUP BY path HAVING count(*) > ?1 LIMIT 1",
            )?
            .exists([int(prune.keep_per_path)])
    }

    /// Looks up what to drop and has the writer drop it. New versions that
    /// come meanwhile change nothing about the old ones found.
    pub(super) fn prune(&self, prune: Prune) -> Result<(), rusqlite::Error> {
        if !self.is_any_to_prune(&prune)? {
            return Ok(());
        }
        // Facts after the snapshot are needed to start.
        let covered = meta::<i64>(&self.connection, "snapshot")?.map_or(0, uint);
        let mut statement = self.connection.prepare_cached(
            "SELECT n FROM (
                SELECT n, time,
                    row_number() OVER (PARTITION BY path ORDER BY n DESC) AS newer,
                    max(n) FILTER (WHERE n <= ?1) OVER (PARTITION BY path) AS base
                FROM fact WHERE path IS NOT NULL)
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
