//! Chores: what the writer does when no turn is pending, one small transaction
//! at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::contents::{Note, Table, Waiting};
use super::exports::{self, Dropped, Progress};
use super::message::Message;
use super::schema::{self, OTHER, int, meta, set_meta, uint};
use super::seal;
use super::unreadable::{self, Bad};
use crate::failpoint;

/// The size of one part of a snapshot, in bytes.
const PART_BYTES: usize = 256 << 10;

/// The number of facts that one step of the trimming looks at.
const TRIM_STEP: u64 = 1_000;

/// In `meta`, while a purge is in progress.
pub(super) const PURGE: &str = "purge";

/// The pause after a failed chore.
const PAUSE: Duration = Duration::from_secs(1);

/// A snapshot that is being written.
struct Snapshot {
    n: u64,
    body: Vec<u8>,
    /// The number of bytes written so far.
    written: usize,
}

pub(super) struct Chores {
    waiting: Arc<Waiting>,
    contents: Table,
    /// Functions to call when all contents are removed.
    forget: Vec<Box<dyn FnOnce() + Send>>,
    /// Functions to call when the file has been rewritten without deleted data;
    /// `None` if no such purge was requested.
    purge: Option<Vec<Box<dyn FnOnce() + Send>>>,
    snapshot: Option<Snapshot>,
    /// There may be facts that the snapshot covers. True until a look finds
    /// none.
    trim: bool,
    deletions: VecDeque<Vec<i64>>,
    /// How far facts were exported now. Within it, `None`: nothing is exported
    /// any more.
    exported: Option<Option<Progress>>,
    dropped: Dropped,
    /// Records that a lookup could not read.
    bad: Vec<Bad>,
    unreadable: Arc<AtomicU64>,
    paused: Option<Instant>,
}

impl Chores {
    /// Creates the chores. `purge`: a purge that the previous run began has to
    /// be repeated.
    pub(super) fn new(
        waiting: Arc<Waiting>,
        contents: Table,
        unreadable: Arc<AtomicU64>,
        dropped: Dropped,
        purge: bool,
    ) -> Self {
        Self {
            waiting,
            contents,
            forget: Vec::new(),
            purge: purge.then(Vec::new),
            snapshot: None,
            // The previous run may have ended in the middle of the trimming.
            trim: true,
            deletions: VecDeque::new(),
            exported: None,
            dropped,
            bad: Vec::new(),
            unreadable,
            paused: None,
        }
    }

    /// Queues the chore of a message. Returns whether the message is
    /// [`Message::Close`].
    pub(super) fn add(&mut self, message: Message) -> bool {
        match message {
            Message::Snapshot { n, body } => {
                self.snapshot = Some(Snapshot {
                    n,
                    body,
                    written: 0,
                });
            }
            Message::PutAside(bad) => self.bad.extend(bad),
            Message::Delete(facts) => self.deletions.push_back(facts),
            Message::Contents(asked) => self.contents.ask(asked),
            Message::ForgetContents(done) => self.forget.push(done),
            Message::Purge => {
                self.purge.get_or_insert_default();
                // Facts that wait for their export must go as well.
                self.trim = true;
            }
            Message::Exported(progress) => self.exported = Some(progress),
            // Pending contents are in `waiting`. The rest is the writer's own.
            Message::Look | Message::Commit { .. } | Message::Malformed(_) => {}
            Message::Close => return true,
        }
        false
    }

    /// Queues what a stored fact says about contents.
    pub(super) fn note(&mut self, note: Note) {
        self.contents.note(note);
    }

    /// Saves the contents from `kill -9` that an undo needs (KEEP-3).
    pub(super) fn spool(&self) {
        self.waiting.spool_needed();
    }

    /// Frees the space that the spool takes. Returns whether it took any.
    pub(super) fn empty_spool(&self) -> bool {
        self.waiting.empty_spool()
    }

    /// Returns whether contents that must not be dropped accumulate in memory.
    pub(super) fn are_urgent(&self) -> bool {
        self.paused.is_none() && self.waiting.is_urgent()
    }

    /// Returns how long to wait until there is a chore to do, or `None` if
    /// there is none.
    pub(super) fn pending(&self) -> Option<Duration> {
        let any = self.snapshot.is_some()
            || self.trim
            || !self.forget.is_empty()
            || self.purge.is_some()
            || !self.deletions.is_empty()
            || !self.bad.is_empty()
            || self.exported.is_some()
            || self.contents.is_pending()
            || self.waiting.has_new_secrets()
            || !self.waiting.is_empty();
        any.then(|| {
            self.paused.map_or(Duration::ZERO, |until| {
                until.saturating_duration_since(Instant::now())
            })
        })
    }

    /// Does one chore. Returns whether something was written. A failure is only
    /// logged: the chore stays queued and is tried again after a pause.
    pub(super) fn step(&mut self, connection: &mut Connection) -> bool {
        self.paused = None;
        match self.next(connection) {
            Ok(done) => done,
            Err(error) => {
                tracing::debug!(%error, "a chore of the store failed");
                self.paused = Some(Instant::now() + PAUSE);
                false
            }
        }
    }

    fn next(&mut self, connection: &mut Connection) -> Result<bool, rusqlite::Error> {
        if !self.forget.is_empty() {
            self.contents.forget(connection)?;
            let told = self.purge.get_or_insert_default();
            told.append(&mut self.forget);
        } else if self.waiting.has_new_secrets() {
            self.contents.keep_out(connection, &self.waiting)?;
        } else if let Some(snapshot) = &mut self.snapshot {
            if snapshot.step(connection)? {
                self.snapshot = None;
                self.trim = true;
            }
        } else if !self.bad.is_empty() {
            let transaction = schema::begin(connection)?;
            let moved = unreadable::put_aside(&transaction, &self.bad)?;
            transaction.commit()?;
            self.unreadable.fetch_add(moved, Ordering::Relaxed);
            self.bad.clear();
        } else if let Some(progress) = &self.exported {
            exports::note(connection, progress.as_ref(), &self.dropped.count)?;
            self.exported = None;
            // Facts may have waited for this.
            self.trim = true;
        } else if self.trim {
            self.trim = trim(connection, self.purge.is_some(), &self.dropped)?;
        } else if let Some(facts) = self.deletions.front() {
            delete(connection, facts, &self.dropped)?;
            self.deletions.pop_front();
        } else if let Some(told) = self.purge.take() {
            // After the snapshot and the trimming, since both delete data.
            purge(connection);
            for done in told {
                done();
            }
        } else if self.contents.is_pending() || !self.waiting.is_empty() {
            self.contents.step(connection, &self.waiting)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

impl Snapshot {
    /// Writes one more part, or makes the whole snapshot the valid one. Returns
    /// whether it is valid now.
    fn step(&mut self, connection: &mut Connection) -> Result<bool, rusqlite::Error> {
        let transaction = schema::begin(connection)?;
        if self.written == 0 {
            let counts: Option<i64> = meta(&transaction, "snapshot")?;
            if counts.map(uint) == Some(self.n) {
                self.replace(&transaction)?;
                failpoint::pass("store: about to replace a snapshot");
                transaction.commit()?;
                return Ok(true);
            }
            // Delete the parts of an earlier attempt that was not completed.
            transaction.execute("DELETE FROM snapshot WHERE n IS NOT ?1", [counts])?;
        }
        let end = self.insert(&transaction, self.written)?;
        let whole = end == self.body.len();
        if whole {
            transaction.execute("DELETE FROM snapshot WHERE n <> ?1", [int(self.n)])?;
            set_meta(&transaction, "snapshot", int(self.n))?;
            set_meta(
                &transaction,
                "snapshot_sum",
                seal::sum(self.n, 0, &self.body),
            )?;
        }
        failpoint::pass("store: about to commit a part of a snapshot");
        transaction.commit()?;
        self.written = end;
        Ok(whole)
    }

    /// Inserts the part that begins at this byte. Returns where it ends.
    fn insert(&self, connection: &Connection, from: usize) -> Result<usize, rusqlite::Error> {
        let end = self.body.len().min(from + PART_BYTES);
        connection.execute(
            "INSERT INTO snapshot (n, part, body) VALUES (?1, ?2, ?3)",
            (
                int(self.n),
                int((from / PART_BYTES) as u64),
                &self.body[from..end],
            ),
        )?;
        Ok(end)
    }

    /// Replaces the valid snapshot of the same fact, in one transaction, unless
    /// it is equal. Without new facts, a snapshot can still have new stats of
    /// files, which save the next start their reads (FILE-5).
    fn replace(&self, connection: &Connection) -> Result<(), rusqlite::Error> {
        let sum = seal::sum(self.n, 0, &self.body);
        let valid: Option<Vec<u8>> = meta(connection, "snapshot_sum")?;
        if valid.as_deref() == Some(sum.as_slice()) {
            return Ok(());
        }
        connection.execute("DELETE FROM snapshot", [])?;
        let mut written = 0;
        while written < self.body.len() {
            written = self.insert(connection, written)?;
        }
        set_meta(connection, "snapshot_sum", sum)
    }
}

/// Deletes some facts that the snapshot covers and no history needs. Returns
/// whether there may be more. The position is stored, so a crash repeats no
/// work. Facts that are still to be exported stay (TEL-4), unless `all` are to
/// go.
fn trim(
    connection: &mut Connection,
    all: bool,
    counter: &Dropped,
) -> Result<bool, rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    let covered = meta::<i64>(&transaction, "snapshot")?.map_or(0, uint);
    let from = meta::<i64>(&transaction, "trimmed")?.map_or(0, uint);
    let covered = match all {
        true => covered,
        false => exports::held(&transaction, covered)?,
    };
    if from >= covered {
        return Ok(false);
    }
    let to = covered.min(from + TRIM_STEP);
    let dropped = counter.between(&transaction, from, to)?;
    transaction.execute(
        "DELETE FROM fact WHERE n > ?1 AND n <= ?2 AND kind = ?3",
        (int(from), int(to), OTHER),
    )?;
    set_meta(&transaction, "trimmed", int(to))?;
    exports::count(&transaction, dropped)?;
    failpoint::pass("store: about to trim");
    transaction.commit()?;
    counter.count.fetch_add(dropped, Ordering::Relaxed);
    Ok(to < covered)
}

/// Rewrites the file without deleted data, and empties its log. If there is no
/// space for that, the next start tries again.
fn purge(connection: &mut Connection) {
    let written = set_meta(connection, PURGE, 1)
        .and_then(|()| connection.execute_batch("VACUUM"))
        .and_then(|()| connection.execute("DELETE FROM meta WHERE key = ?1", [PURGE]));
    if let Err(error) = written {
        tracing::warn!("what was forgotten may still be in the store's file: {error}");
    }
    // A reader that is active now prevents the emptying. Then the upkeep thread
    // does it later.
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = emptied {
        tracing::debug!(%error, "the log was not emptied");
    }
}

/// Deletes pruned versions, and notes up to which fact the log is no longer
/// complete.
fn delete(
    connection: &mut Connection,
    facts: &[i64],
    counter: &Dropped,
) -> Result<(), rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    let dropped = counter.of(&transaction, facts)?;
    let before = meta::<i64>(&transaction, "pruned")?.unwrap_or(0);
    for n in facts {
        transaction
            .prepare_cached("DELETE FROM fact WHERE n = ?1")?
            .execute([n])?;
    }
    let newest = facts.iter().copied().max().unwrap_or(0);
    set_meta(&transaction, "pruned", before.max(newest))?;
    exports::count(&transaction, dropped)?;
    transaction.commit()?;
    counter.count.fetch_add(dropped, Ordering::Relaxed);
    Ok(())
}
