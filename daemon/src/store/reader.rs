//! Lookups that do not wait for the writer.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use rusqlite::{Connection, OpenFlags, OptionalExtension, Params};
use touchmark_engine::Record;
use touchmark_proto::{Hash, Millis, RelPath};

use super::contents::{Asked, Kept, Waiting, WhyNot, read};
use super::error::StoreError;
use super::load::record;
use super::message::Message;
use super::schema::{
    self, CARRIAGE, CLAIM, LASTING, LINEAGE, OTHER, VERSION, first_at, int, meta, uint,
};
use super::unreadable::{self, Bad};
use super::unstored::Unstored;

/// Opens read-only connections to a store, on any thread.
#[derive(Clone)]
pub struct Readers {
    pub(super) path: PathBuf,
    pub(super) writable: bool,
    pub(super) unstored: Arc<Unstored>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) writer: Sender<Message>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Readers").finish_non_exhaustive()
    }
}

impl Readers {
    /// Opens a read-only connection, for one thread at a time.
    ///
    /// # Errors
    /// [`StoreError::Storage`] if the system refuses.
    pub fn open(&self) -> Result<Reader, StoreError> {
        let connection = if self.writable {
            Some(schema::connect(
                &self.path,
                OpenFlags::SQLITE_OPEN_READ_ONLY,
            )?)
        } else if self.path.try_exists()? {
            Some(schema::connect_unwritable(&self.path)?)
        } else {
            None
        };
        Ok(Reader {
            connection,
            unstored: Arc::clone(&self.unstored),
            waiting: Arc::clone(&self.waiting),
            writer: self.writer.clone(),
            last: RefCell::default(),
        })
    }
}

/// A read-only connection. Its answers include every fact that was passed to
/// the store before the call, committed or not. It may be moved to another
/// thread.
pub struct Reader {
    /// `None` if there is no file and none can be created.
    connection: Option<Connection>,
    unstored: Arc<Unstored>,
    waiting: Arc<Waiting>,
    writer: Sender<Message>,
    /// The content that was read last. The next one may be compressed against
    /// it.
    last: RefCell<Option<(Hash, Arc<[u8]>)>>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// Returns the connection. `None` if there is no file and none can be
    /// created.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// Returns baselines and versions of a path before fact `before`, newest
    /// first, without those that cannot be read.
    ///
    /// # Errors
    /// [`StoreError::Storage`], [`StoreError::Damaged`].
    pub fn history(
        &self,
        path: &RelPath,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let unstored = self.unstored.find(|record| {
            before.is_none_or(|before| record.n < before)
                && record.fact.version_path() == Some(path)
        });
        let (stored, _) = self.records(
            limit,
            "SELECT n, time, body FROM fact
             WHERE path = ?1 AND n < ?2 AND kind IN (1, 2) ORDER BY n DESC",
            (path.as_bytes(), before.map_or(i64::MAX, int)),
        )?;
        let mut all = joined(stored.into_iter().rev().collect(), unstored);
        all.reverse();
        all.truncate(limit);
        Ok(all)
    }

    /// Returns the facts about what git brought of a path
    /// ([`touchmark_engine::Fact::GitBrought`]), oldest first.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn carriages(&self, path: &RelPath) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| schema::row_of(&record.fact) == (CARRIAGE, Some(path)));
        let stored = self.all_records(
            usize::MAX,
            "SELECT n, time, body FROM fact WHERE path = ?1 AND kind = 5 ORDER BY n",
            [path.as_bytes()],
        )?;
        Ok(joined(stored, unstored))
    }

    /// Removes the pins of these contents (KEEP-2): the agents' changes that
    /// they belong to were kept or undone. They must not include a content that
    /// another such change needs.
    pub fn unpin(&self, hashes: Vec<Hash>) {
        // The writer no longer runs while the store is being shut down.
        let _ = self.writer.send(Message::Contents(Asked::Unpin(hashes)));
    }

    /// Returns all versions after fact `n`, oldest first.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn versions_after(&self, n: u64) -> Result<Vec<Record>, StoreError> {
        self.versions_from(n, usize::MAX)
    }

    /// Returns at most `limit` versions after fact `n`, oldest first.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn versions_from(&self, n: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.n > n && schema::row_of(&record.fact).0 == VERSION);
        let stored = self.all_records(
            limit,
            "SELECT n, time, body FROM fact WHERE n > ?1 AND kind = 2 ORDER BY n",
            [int(n)],
        )?;
        let mut all = joined(stored, unstored);
        all.truncate(limit);
        Ok(all)
    }

    /// As [`versions_from`](Self::versions_from), with the baselines.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn changes_from(&self, n: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.n > n && record.fact.version_path().is_some());
        let stored = self.all_records(
            limit,
            "SELECT n, time, body FROM fact WHERE n > ?1 AND kind IN (1, 2) ORDER BY n",
            [int(n)],
        )?;
        let mut all = joined(stored, unstored);
        all.truncate(limit);
        Ok(all)
    }

    /// Returns at most `limit` facts of any kind after fact `n`, oldest first.
    /// Of the facts that a snapshot covers, only baselines, versions and those
    /// about survival remain.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
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

    /// Returns the versions recorded at `from` or later and before `to`, by
    /// time.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
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

    /// Returns the number of the newest stored version or baseline that was
    /// recorded before `time`: a checkpoint by time begins there.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
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

    /// Returns the number of the newest fact of any kind that was recorded before
    /// `time`; 0 for none.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn newest_before_time(&self, time: Millis) -> Result<u64, StoreError> {
        let unstored = self.unstored.find(|record| record.time < time);
        if let Some(newest) = unstored.last() {
            return Ok(newest.n);
        }
        let Some(connection) = &self.connection else {
            return Ok(0);
        };
        Ok(uint(first_at(connection, time)?).saturating_sub(1))
    }

    /// Returns the number of the fact since which the log is complete. A clock
    /// before it is unknown. `None` if nothing was pruned yet.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        Ok(meta::<i64>(connection, "pruned")?.map(uint))
    }

    /// Returns a stored content, or `None` if it is not stored or is damaged.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn content(&self, hash: &Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.look_up(hash, true)
    }

    /// Returns a stored content like [`content`](Self::content), without noting
    /// that it was used.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn peek(&self, hash: &Hash) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.look_up(hash, false)
    }

    fn look_up(&self, hash: &Hash, used: bool) -> Result<Option<Arc<[u8]>>, StoreError> {
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
            // The content read last must not be returned if it was forgotten
            // meanwhile.
            let kept = read(connection, hash, near.filter(|(near, _)| *near != hash));
            self.noticed(kept.map_err(StoreError::from))?
        };
        let (found, asked) = match kept {
            Kept::Whole(bytes) => (Some(Arc::from(bytes)), Asked::Used(*hash)),
            Kept::Damaged => (None, Asked::Damaged(*hash)),
            Kept::Not => return Ok(None),
        };
        if used || found.is_none() {
            // The writer no longer runs while the store is being shut down.
            let _ = self.writer.send(Message::Contents(asked));
        }
        if let Some(bytes) = &found {
            *self.last.borrow_mut() = Some((*hash, Arc::clone(bytes)));
        }
        Ok(found)
    }

    /// Returns why a content of `size` bytes that is not stored is not
    /// available.
    pub fn why_not(&self, hash: &Hash, size: u64) -> WhyNot {
        if self.waiting.is_secret(hash) {
            WhyNot::Excluded
        } else if self.waiting.is_too_large(size) {
            WhyNot::TooLarge
        } else {
            WhyNot::NoLongerKept
        }
    }

    /// Returns whether a content was once met as a secret, so that it is never
    /// stored.
    pub fn is_secret(&self, hash: &Hash) -> bool {
        self.waiting.is_secret(hash)
    }

    /// Returns at most `limit` versions before fact `n`, newest first, without
    /// those that cannot be read.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
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

    /// Returns what the user undid, restored and kept, oldest first.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn lasting(&self) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| schema::row_of(&record.fact).0 == LASTING);
        let stored = self.all_records(
            usize::MAX,
            "SELECT n, time, body FROM fact WHERE kind = 3 ORDER BY n",
            [],
        )?;
        Ok(joined(stored, unstored))
    }

    /// Returns which names stand for which files
    /// ([`touchmark_engine::Fact::Lineage`]), oldest first.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn lineages(&self) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| schema::row_of(&record.fact).0 == LINEAGE);
        let stored = self.all_records(
            usize::MAX,
            "SELECT n, time, body FROM fact WHERE kind = 6 ORDER BY n",
            [],
        )?;
        Ok(joined(stored, unstored))
    }

    /// Returns the facts by which the user named the author of lines
    /// ([`touchmark_engine::Fact::Claimed`]), oldest first: those of one path,
    /// or all if `path` is `None`.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
    pub fn claims(&self, path: Option<&RelPath>) -> Result<Vec<Record>, StoreError> {
        let unstored = self.unstored.find(|record| {
            let (kind, own) = schema::row_of(&record.fact);
            kind == CLAIM && (path.is_none() || own == path)
        });
        let stored = match path {
            Some(path) => self.all_records(
                usize::MAX,
                "SELECT n, time, body FROM fact WHERE kind = 4 AND path = ?1 ORDER BY n",
                [path.as_bytes()],
            )?,
            None => self.all_records(
                usize::MAX,
                "SELECT n, time, body FROM fact WHERE kind = 4 ORDER BY n",
                [],
            )?,
        };
        Ok(joined(stored, unstored))
    }

    /// Returns at most `limit` facts that are neither baselines nor versions
    /// nor about survival, before fact `n`, newest first. Those that a snapshot covers are dropped
    /// ([`untrimmed`](Self::untrimmed)).
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn other_facts_before(&self, n: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let unstored = self
            .unstored
            .find(|record| record.n < n && schema::row_of(&record.fact).0 == OTHER);
        // Older ones are not looked through: the table may have many versions.
        let from = match &self.connection {
            Some(connection) => meta::<i64>(connection, "trimmed")?.unwrap_or(0),
            None => 0,
        };
        let (stored, _) = self.records(
            limit,
            "SELECT n, time, body FROM fact WHERE n > ?1 AND n < ?2 AND kind = 0 ORDER BY n DESC",
            [from, i64::try_from(n).unwrap_or(i64::MAX)],
        )?;
        let mut all = joined(stored.into_iter().rev().collect(), unstored);
        all.reverse();
        all.truncate(limit);
        Ok(all)
    }

    /// Returns when the oldest fact was recorded after which no fact was dropped.
    /// `None` if none is stored.
    ///
    /// # Errors
    /// As [`history`](Self::history).
    pub fn untrimmed(&self) -> Result<Option<Millis>, StoreError> {
        let Some(connection) = &self.connection else {
            return Ok(None);
        };
        let trimmed = meta::<i64>(connection, "trimmed")?.unwrap_or(0);
        let time: Option<i64> = connection
            .prepare_cached("SELECT time FROM fact WHERE n > ?1 ORDER BY n LIMIT 1")?
            .query_row([trimmed], |row| row.get(0))
            .optional()?;
        Ok(time.map(uint))
    }

    /// Returns the number of the newest fact of a path before `before` that
    /// cannot be read.
    ///
    /// # Errors
    /// The same as [`history`](Self::history).
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

    /// Returns at most `limit` records. Fails if one of them cannot be read.
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

    /// Returns at most `limit` records that can be read, and the cause if one
    /// cannot.
    fn records(
        &self,
        limit: usize,
        sql: &str,
        params: impl Params,
    ) -> Result<(Vec<Record>, Option<String>), StoreError> {
        match &self.connection {
            Some(connection) => self.noticed(self.records_of(connection, limit, sql, params)),
            None => Ok((Vec::new(), None)),
        }
    }

    /// Has a damaged file mended. The lookup fails once.
    fn noticed<T>(&self, found: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Damaged { cause }) = &found {
            // The writer no longer runs while the store is being shut down.
            let _ = self.writer.send(Message::Malformed(cause.clone()));
        }
        found
    }

    fn records_of(
        &self,
        connection: &Connection,
        limit: usize,
        sql: &str,
        params: impl Params,
    ) -> Result<(Vec<Record>, Option<String>), StoreError> {
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
            // The writer no longer runs while the store is being shut down.
            let _ = self.writer.send(Message::PutAside(bad));
        }
        Ok((records, cause))
    }
}

/// Returns the stored facts followed by the unstored ones, oldest first. A fact
/// that was stored between the two lookups is in both lists, and once in the
/// result.
fn joined(mut stored: Vec<Record>, unstored: Vec<Record>) -> Vec<Record> {
    let last = stored.last().map_or(0, |record| record.n);
    stored.extend(unstored.into_iter().filter(|record| record.n > last));
    stored
}
