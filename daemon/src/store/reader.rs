//! Looking things up, without waiting for the writer.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Params};
use touchmark_engine::Record;
use touchmark_proto::{Hash, Millis, RelPath};

use super::contents::{Asked, Kept, Waiting, WhyNot, read};
use super::error::StoreError;
use super::load::record;
use super::schema::{self, VERSION, first_at, int, meta, uint};
use super::unreadable::{self, Bad};
use super::unstored::Unstored;
use super::writer::Message;

/// A read-only connection. Sees everything that was reported before the call,
/// committed or not. May be handed to another thread.
pub struct Reader {
    /// `None` where there is no file, and none can be made.
    connection: Option<Connection>,
    unstored: Arc<Unstored>,
    waiting: Arc<Waiting>,
    writer: Sender<Message>,
    /// The content that was read last: the next one may rest on it.
    last: RefCell<Option<(Hash, Arc<[u8]>)>>,
}

impl Reader {
    pub(super) fn new(
        path: &Path,
        writable: bool,
        unstored: Arc<Unstored>,
        waiting: Arc<Waiting>,
        writer: Sender<Message>,
    ) -> Result<Self, StoreError> {
        let connection = if writable {
            Some(schema::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
        } else if path.try_exists()? {
            Some(schema::connect_unwritable(path)?)
        } else {
            None
        };
        Ok(Self {
            connection,
            unstored,
            waiting,
            writer,
            last: RefCell::default(),
        })
    }

    /// Baselines and versions of a path before fact `before`, newest first,
    /// but for those that cannot be read.
    ///
    /// # Errors
    /// As for all of these: [`StoreError::Storage`], [`StoreError::Damaged`].
    pub fn history(
        &self,
        path: &RelPath,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let unstored = self.unstored.find(|record| {
            before.is_none_or(|before| record.n < before)
                && schema::row_of(&record.fact).1 == Some(path)
        });
        let (stored, _) = self.records(
            limit,
            "SELECT n, time, body FROM fact WHERE path = ?1 AND n < ?2 ORDER BY n DESC",
            (path.as_bytes(), before.map_or(i64::MAX, int)),
        )?;
        let mut all = joined(stored.into_iter().rev().collect(), unstored);
        all.reverse();
        all.truncate(limit);
        Ok(all)
    }

    /// Changes by agents that held these contents before or after them were
    /// kept or undone: they are no longer pinned for that (KEEP-2). A content
    /// that another such change needs is not to be among them.
    pub fn unpin(&self, hashes: Vec<Hash>) {
        // Nobody is there to note it while the store is being shut.
        let _ = self.writer.send(Message::Contents(Asked::Unpin(hashes)));
    }

    /// All versions after fact `n`, oldest first.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn versions_after(&self, n: u64) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.n > n && schema::row_of(&record.fact).0 == VERSION);
        let stored = self.all_records(
            usize::MAX,
            "SELECT n, time, body FROM fact WHERE n > ?1 AND kind = 2 ORDER BY n",
            [int(n)],
        )?;
        Ok(joined(stored, unstored))
    }

    /// At most `limit` facts of any kind after fact `n`, oldest first. Those
    /// that a snapshot covers are gone, but for baselines and versions.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn facts_after(&self, n: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let unstored = self.unstored.find(|record| record.n > n);
        let stored = self.all_records(
            limit,
            "SELECT n, time, body FROM fact WHERE n > ?1 ORDER BY n",
            [int(n)],
        )?;
        let mut all = joined(stored, unstored);
        all.truncate(limit);
        Ok(all)
    }

    /// Versions recorded at `from` or later and before `to`, by time.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn versions_between_times(
        &self,
        from: Millis,
        to: Millis,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let unstored = self.unstored.find(|record| {
            (from..to).contains(&record.time) && schema::row_of(&record.fact).0 == VERSION
        });
        let between = match &self.connection {
            Some(connection) => [first_at(connection, from)?, first_at(connection, to)?],
            None => [0, 0],
        };
        let stored = self.all_records(
            limit,
            "SELECT n, time, body FROM fact
             WHERE kind = 2 AND n >= ?1 AND n < ?2 ORDER BY n",
            between,
        )?;
        let mut all = joined(stored, unstored);
        all.truncate(limit);
        Ok(all)
    }

    /// The newest fact that was recorded before `time`, of those versions and
    /// baselines that are kept: where a checkpoint by time begins.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn last_before_time(&self, time: Millis) -> Result<Option<u64>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.time < time && schema::row_of(&record.fact).0 == VERSION);
        if let Some(newest) = unstored.last() {
            return Ok(Some(newest.n));
        }
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        let n: Option<i64> = connection
            .prepare_cached("SELECT n FROM fact WHERE kind = 2 AND n < ?1 ORDER BY n DESC LIMIT 1")?
            .query_row([first_at(connection, time)?], |row| row.get(0))
            .optional()?;
        Ok(n.map(uint))
    }

    /// The fact since which the log is complete: a clock before it is unknown.
    /// `None` as long as nothing was pruned.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        Ok(meta::<i64>(connection, "pruned")?.map(uint))
    }

    /// A kept content; `None` if it is not kept, or no longer what it was.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn content(&self, hash: &Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        if let Some(bytes) = self.waiting.get(hash) {
            return Ok(Some(bytes));
        }
        let Some(connection) = self
            .connection
            .as_ref()
            .filter(|_| !self.waiting.is_secret(hash))
        else {
            return Ok(None);
        };
        let kept = {
            let last = self.last.borrow();
            let near = last.as_ref().map(|(hash, bytes)| (hash, &bytes[..]));
            // One that was forgotten meanwhile is not to be told.
            read(connection, hash, near.filter(|(near, _)| *near != hash))?
        };
        let (found, asked) = match kept {
            Kept::Whole(bytes) => (Some(Arc::from(bytes)), Asked::Used(*hash)),
            Kept::Damaged => (None, Asked::Damaged(*hash)),
            Kept::Not => return Ok(None),
        };
        // Nobody is there to note it while the store is being shut.
        let _ = self.writer.send(Message::Contents(asked));
        if let Some(bytes) = &found {
            *self.last.borrow_mut() = Some((*hash, Arc::clone(bytes)));
        }
        Ok(found)
    }

    /// Why a content of so many bytes cannot be had, where it cannot.
    pub fn why_not(&self, hash: &Hash, size: u64) -> WhyNot {
        if self.waiting.is_secret(hash) {
            WhyNot::Excluded
        } else if self.waiting.is_too_large(size) {
            WhyNot::TooLarge
        } else {
            WhyNot::NoLongerKept
        }
    }

    /// Whether a content was met as a secret, so that it is never kept.
    pub fn is_secret(&self, hash: &Hash) -> bool {
        self.waiting.is_secret(hash)
    }

    /// At most `limit` versions before fact `n`, newest first, but for those
    /// that cannot be read.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn versions_before(&self, n: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.n < n && schema::row_of(&record.fact).0 == VERSION);
        let (stored, _) = self.records(
            limit,
            "SELECT n, time, body FROM fact WHERE n < ?1 AND kind = 2 ORDER BY n DESC",
            [i64::try_from(n).unwrap_or(i64::MAX)],
        )?;
        let mut all = joined(stored.into_iter().rev().collect(), unstored);
        all.reverse();
        all.truncate(limit);
        Ok(all)
    }

    /// The newest fact of a path before `before` that cannot be read.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn unreadable(
        &self,
        path: &RelPath,
        before: Option<u64>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        let before = before.map_or(i64::MAX, int);
        let aside = unreadable::of_path(connection, path.as_bytes(), before)?;
        Ok(aside.last().copied())
    }

    /// At most `limit` records, none of which may be left out.
    fn all_records(
        &self,
        limit: usize,
        sql: &str,
        params: impl Params,
    ) -> Result<Vec<Record>, StoreError> {
        match self.records(limit, sql, params)? {
            (records, None) => Ok(records),
            (_, Some(cause)) => Err(StoreError::Unreadable { cause }),
        }
    }

    /// At most `limit` records that can be read, and why one cannot.
    fn records(
        &self,
        limit: usize,
        sql: &str,
        params: impl Params,
    ) -> Result<(Vec<Record>, Option<String>), StoreError> {
        let Some(connection) = &self.connection else {
            return Ok((Vec::new(), None));
        };
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params)?;
        let mut records = Vec::new();
        let mut bad: Vec<Bad> = Vec::new();
        while records.len() < limit {
            let Some(row) = rows.next()? else { break };
            match record(row)? {
                Ok(record) => records.push(record),
                Err(one) => bad.push(one),
            }
        }
        let cause = bad.first().map(Bad::cause);
        if cause.is_some() {
            // Nobody is there to note it while the store is being shut.
            let _ = self.writer.send(Message::PutAside(bad));
        }
        Ok((records, cause))
    }
}

/// Stored facts with those behind them that are not, oldest first. What was
/// stored between the two looks is in both.
fn joined(mut stored: Vec<Record>, unstored: Vec<Record>) -> Vec<Record> {
    let last = stored.last().map_or(0, |record| record.n);
    stored.extend(unstored.into_iter().filter(|record| record.n > last));
    stored
}
