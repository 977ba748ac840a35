//! Kept contents: those that wait in memory, and the table.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension};
use touchmark_proto::Hash;

use super::schema::{self, int, uint};

/// Contents waiting in memory for a quiet moment; the oldest are dropped when
/// there are more bytes.
const WAITING_BYTES: usize = 16 << 20;

/// One transaction writes at most this many bytes (or one content), so that a
/// turn's commit does not wait long for it.
const BATCH_BYTES: usize = 256 << 10;

/// The same after a storm, where what is asked meanwhile waits for more than
/// that. Each content has its own place in two indexes: the more are written
/// at once, the more of them share a page.
const LARGE_BATCH_BYTES: usize = 1 << 20;

/// Secrets remembered; of more, the first are forgotten.
const SECRETS: usize = 100_000;

/// Contents that are to be written, readable before they are, and those that
/// never are.
pub(super) struct Waiting {
    largest: u64,
    queue: Mutex<Queue>,
    secrets: Mutex<Secrets>,
}

/// Contents that were met as a secret.
#[derive(Default)]
struct Secrets {
    known: HashSet<Hash>,
    /// Not in the table yet.
    new: Vec<Hash>,
}

#[derive(Default)]
struct Queue {
    bytes: HashMap<Hash, Arc<[u8]>>,
    order: VecDeque<Hash>,
    total: usize,
}

impl Waiting {
    /// `secrets` are those of the table.
    pub(super) fn new(largest: u64, secrets: impl IntoIterator<Item = Hash>) -> Self {
        let secrets = Secrets {
            known: secrets.into_iter().collect(),
            new: Vec::new(),
        };
        Self {
            largest,
            queue: Mutex::default(),
            secrets: Mutex::new(secrets),
        }
    }

    /// From now on the content is not kept, under any name; says whether the
    /// writer must be told.
    pub(super) fn keep_out(&self, hash: Hash) -> bool {
        let mut secrets = self.secrets();
        if !secrets.known.insert(hash) {
            return false;
        }
        secrets.new.push(hash);
        drop(secrets);
        let mut queue = self.lock();
        if let Some(bytes) = queue.bytes.remove(&hash) {
            queue.total -= bytes.len();
            queue.order.retain(|waiting| *waiting != hash);
        }
        true
    }

    /// Whether it was met as a secret.
    pub(super) fn is_secret(&self, hash: &Hash) -> bool {
        self.secrets().known.contains(hash)
    }

    /// Whether there are secrets that the table does not have.
    pub(super) fn has_new_secrets(&self) -> bool {
        !self.secrets().new.is_empty()
    }

    fn new_secrets(&self) -> Vec<Hash> {
        self.secrets().new.clone()
    }

    fn secrets_written(&self, written: usize) {
        self.secrets().new.drain(..written);
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a content in; says whether the writer must be told.
    pub(super) fn keep(&self, hash: Hash, bytes: Arc<[u8]>) -> bool {
        if bytes.len() as u64 > self.largest || self.is_secret(&hash) {
            return false;
        }
        let mut queue = self.lock();
        if queue.bytes.contains_key(&hash) {
            return false;
        }
        let first = queue.order.is_empty();
        queue.total += bytes.len();
        queue.order.push_back(hash);
        queue.bytes.insert(hash, bytes);
        while queue.total > WAITING_BYTES {
            queue.drop_oldest();
        }
        first
    }

    /// A content that waits.
    pub(super) fn get(&self, hash: &Hash) -> Option<Arc<[u8]>> {
        self.lock().bytes.get(hash).cloned()
    }

    pub(super) fn clear(&self) {
        *self.lock() = Queue::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().order.is_empty()
    }

    /// The oldest contents, as many as one transaction takes. They wait on
    /// until [`written`](Self::written).
    fn batch(&self) -> Vec<(Hash, Arc<[u8]>)> {
        let queue = self.lock();
        let most = if queue.total < WAITING_BYTES / 4 {
            BATCH_BYTES
        } else {
            LARGE_BATCH_BYTES
        };
        let mut batch = Vec::new();
        let mut total = 0;
        for hash in &queue.order {
            let Some(bytes) = queue.bytes.get(hash) else {
                continue;
            };
            total += bytes.len();
            if total > most && !batch.is_empty() {
                break;
            }
            batch.push((*hash, Arc::clone(bytes)));
        }
        batch
    }

    fn written(&self, batch: &[(Hash, Arc<[u8]>)]) {
        let mut queue = self.lock();
        for (hash, _) in batch {
            // It may have been dropped or forgotten in the meantime.
            if queue.order.front() == Some(hash) {
                queue.drop_oldest();
            }
        }
        if queue.order.is_empty() {
            // After a storm the room for what waited is larger than all else.
            *queue = Queue::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Every change of the queue is complete before anything can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn drop_oldest(&mut self) {
        if let Some(hash) = self.order.pop_front()
            && let Some(bytes) = self.bytes.remove(&hash)
        {
            self.total -= bytes.len();
        }
    }
}

/// The table, as the writer sees it.
pub(super) struct Table {
    cap: u64,
    /// Bytes kept and the newest use; read from the table at the first need,
    /// not while the daemon starts.
    sums: Option<(u64, u64)>,
}

impl Table {
    pub(super) fn new(cap: u64) -> Self {
        Self { cap, sums: None }
    }

    /// Writes one batch and makes room for it.
    pub(super) fn write(
        &mut self,
        connection: &mut Connection,
        waiting: &Waiting,
    ) -> Result<(), rusqlite::Error> {
        let batch = waiting.batch();
        let transaction = schema::begin(connection)?;
        let (mut total, mut used) = match self.sums {
            Some(sums) => sums,
            None => sums(&transaction)?,
        };
        for (hash, bytes) in &batch {
            used += 1;
            let size = bytes.len() as u64;
            if touch(&transaction, hash, used)? {
                continue;
            }
            if size > self.cap {
                continue;
            }
            total -= evict(&transaction, (total + size).saturating_sub(self.cap))?;
            transaction
                .prepare_cached(
                    "INSERT INTO content (hash, size, used, body) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute((&hash.0[..], int(size), int(used), &bytes[..]))?;
            total += size;
        }
        transaction.commit()?;
        self.sums = Some((total, used));
        waiting.written(&batch);
        Ok(())
    }

    /// Notes that these were used.
    pub(super) fn used(
        &mut self,
        connection: &mut Connection,
        hashes: &[Hash],
    ) -> Result<(), rusqlite::Error> {
        let transaction = schema::begin(connection)?;
        let (total, mut used) = match self.sums {
            Some(sums) => sums,
            None => sums(&transaction)?,
        };
        for hash in hashes {
            used += 1;
            touch(&transaction, hash, used)?;
        }
        transaction.commit()?;
        self.sums = Some((total, used));
        Ok(())
    }

    /// Notes which contents are secrets, and deletes those that were kept
    /// under another name. Their bytes are overwritten, as by
    /// [`forget`](Self::forget).
    pub(super) fn keep_out(
        &mut self,
        connection: &mut Connection,
        waiting: &Waiting,
    ) -> Result<(), rusqlite::Error> {
        let new = waiting.new_secrets();
        connection.execute_batch("PRAGMA secure_delete = 1")?;
        let done = keep_out(connection, &new);
        connection.execute_batch("PRAGMA secure_delete = 0")?;
        if done? {
            self.sums = None;
        }
        waiting.secrets_written(new.len());
        Ok(())
    }

    /// Deletes all. `secure_delete` overwrites the freed pages, so that the
    /// bytes are gone from the file and not only from the table.
    pub(super) fn forget(&mut self, connection: &mut Connection) -> Result<(), rusqlite::Error> {
        self.sums = None;
        connection.execute_batch("PRAGMA secure_delete = 1")?;
        let done = connection.execute("DELETE FROM content", []);
        connection.execute_batch("PRAGMA secure_delete = 0")?;
        done.map(|_| ())
    }
}

/// The secrets of the table.
pub(super) fn secrets(connection: &Connection) -> Result<Vec<Hash>, rusqlite::Error> {
    let mut statement = connection.prepare("SELECT hash FROM secret")?;
    let rows = statement.query_map([], |row| row.get(0).map(Hash))?;
    rows.collect()
}

/// Says whether one of them was kept.
fn keep_out(connection: &mut Connection, secrets: &[Hash]) -> Result<bool, rusqlite::Error> {
    let transaction = schema::begin(connection)?;
    let mut kept = 0;
    for hash in secrets {
        transaction.execute("INSERT OR IGNORE INTO secret VALUES (?1)", [&hash.0[..]])?;
        kept += transaction.execute("DELETE FROM content WHERE hash = ?1", [&hash.0[..]])?;
    }
    transaction.execute(
        "DELETE FROM secret WHERE rowid <= (SELECT max(rowid) FROM secret) - ?1",
        [int(SECRETS as u64)],
    )?;
    transaction.commit()?;
    Ok(kept > 0)
}

fn sums(connection: &Connection) -> Result<(u64, u64), rusqlite::Error> {
    connection.query_row(
        "SELECT coalesce(sum(size), 0), coalesce(max(used), 0) FROM content",
        [],
        |row| Ok((uint(row.get(0)?), uint(row.get(1)?))),
    )
}

/// Moves a content to the end of the eviction order; says whether it is kept.
fn touch(connection: &Connection, hash: &Hash, used: u64) -> Result<bool, rusqlite::Error> {
    connection
        .prepare_cached("UPDATE content SET used = ?2 WHERE hash = ?1")?
        .execute((&hash.0[..], int(used)))
        .map(|rows| rows > 0)
}

/// Deletes the least recently used contents until `excess` bytes are gone;
/// says how many were.
fn evict(connection: &Connection, excess: u64) -> Result<u64, rusqlite::Error> {
    let mut gone = 0;
    while gone < excess {
        let oldest: Option<(i64, i64)> = connection
            .prepare_cached("SELECT rowid, size FROM content ORDER BY used LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((row, size)) = oldest else { break };
        connection
            .prepare_cached("DELETE FROM content WHERE rowid = ?1")?
            .execute([row])?;
        gone += uint(size);
    }
    Ok(gone)
}
