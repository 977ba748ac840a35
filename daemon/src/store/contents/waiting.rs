//! Contents in memory that wait for a quiet moment to be written.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use touchmark_engine::Record;
use touchmark_proto::Hash;

use super::Said;

/// Contents waiting in memory; the oldest are dropped when there are more
/// bytes.
const WAITING_BYTES: usize = 16 << 20;

/// Those that changes by agents rest on are dropped only beyond this: the
/// writer sees to it, before all else it does, that they do not pile up.
const NEEDED_BYTES: usize = 256 << 20;

/// One transaction writes at most this many bytes (or one content), so that a
/// turn's commit does not wait long for it.
const BATCH_BYTES: usize = 256 << 10;

/// The same after a storm, where what is asked meanwhile waits for more than
/// that. Each content has its own place in the indexes: the more are written
/// at once, the more of them share a page.
const LARGE_BATCH_BYTES: usize = 1 << 20;

/// Contents that are to be written, readable before they are, and those that
/// never are.
pub(in super::super) struct Waiting {
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

struct Entry {
    bytes: Arc<[u8]>,
    /// A change by an agent rests on it.
    needed: bool,
}

#[derive(Default)]
struct Queue {
    entries: HashMap<Hash, Entry>,
    /// In the order of their coming; some may be gone, or needed by now.
    order: VecDeque<Hash>,
    /// Those that are needed; some may be gone.
    needed: VecDeque<Hash>,
    total: usize,
    needed_total: usize,
    /// Some were dropped since that was asked last.
    dropped: bool,
}

impl Waiting {
    /// `secrets` are those of the table.
    pub(in super::super) fn new(largest: u64, secrets: impl IntoIterator<Item = Hash>) -> Self {
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
    pub(in super::super) fn keep_out(&self, hash: Hash) -> bool {
        let mut secrets = self.secrets();
        if !secrets.known.insert(hash) {
            return false;
        }
        secrets.new.push(hash);
        drop(secrets);
        self.lock().take(&hash);
        true
    }

    /// Whether it was met as a secret.
    pub(in super::super) fn is_secret(&self, hash: &Hash) -> bool {
        self.secrets().known.contains(hash)
    }

    /// Whether a content of so many bytes is too large to be kept.
    pub(in super::super) fn is_too_large(&self, size: u64) -> bool {
        size > self.largest
    }

    /// Whether there are secrets that the table does not have.
    pub(in super::super) fn has_new_secrets(&self) -> bool {
        !self.secrets().new.is_empty()
    }

    pub(super) fn new_secrets(&self) -> Vec<Hash> {
        self.secrets().new.clone()
    }

    pub(super) fn secrets_written(&self, written: usize) {
        self.secrets().new.drain(..written);
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a content in; says whether the writer must be told.
    pub(in super::super) fn keep(&self, hash: Hash, bytes: Arc<[u8]>) -> bool {
        if self.is_too_large(bytes.len() as u64) || self.is_secret(&hash) {
            return false;
        }
        let mut queue = self.lock();
        if queue.entries.contains_key(&hash) {
            return false;
        }
        let first = queue.entries.is_empty();
        queue.total += bytes.len();
        queue.order.push_back(hash);
        let needed = false;
        queue.entries.insert(hash, Entry { bytes, needed });
        queue.shrink();
        first
    }

    /// What these facts say that agents changed is not dropped (KEEP-3).
    pub(in super::super) fn heed(&self, records: &[Record]) {
        let needed: Vec<Hash> = records
            .iter()
            .filter_map(|record| Said::by(&record.fact))
            .flat_map(|said| said.needed())
            .collect();
        if needed.is_empty() {
            return;
        }
        let mut queue = self.lock();
        for hash in needed {
            queue.need(hash);
        }
        queue.shrink();
    }

    /// A content that waits.
    pub(in super::super) fn get(&self, hash: &Hash) -> Option<Arc<[u8]>> {
        let queue = self.lock();
        queue
            .entries
            .get(hash)
            .map(|entry| Arc::clone(&entry.bytes))
    }

    pub(in super::super) fn clear(&self) {
        *self.lock() = Queue::default();
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Whether so much is needed that the writer must not wait for quiet.
    pub(in super::super) fn is_urgent(&self) -> bool {
        self.lock().needed_total > WAITING_BYTES / 2
    }

    /// Whether some were dropped since the last call.
    pub(super) fn take_dropped(&self) -> bool {
        std::mem::take(&mut self.lock().dropped)
    }

    /// The oldest contents, as many as one transaction takes. They wait on
    /// until [`written`](Self::written).
    pub(super) fn batch(&self) -> Vec<(Hash, Arc<[u8]>)> {
        let queue = self.lock();
        let most = if queue.total < WAITING_BYTES / 4 {
            BATCH_BYTES
        } else {
            LARGE_BATCH_BYTES
        };
        let mut batch = Vec::new();
        let mut total = 0;
        let needed = queue.needed.iter().map(|hash| (hash, true));
        let others = queue.order.iter().map(|hash| (hash, false));
        for (hash, needed) in needed.chain(others) {
            let Some(entry) = queue
                .entries
                .get(hash)
                .filter(|entry| entry.needed == needed)
            else {
                continue;
            };
            total += entry.bytes.len();
            if total > most && !batch.is_empty() {
                break;
            }
            batch.push((*hash, Arc::clone(&entry.bytes)));
        }
        batch
    }

    pub(super) fn written<'a>(&self, hashes: impl IntoIterator<Item = &'a Hash>) {
        let mut queue = self.lock();
        for hash in hashes {
            // It may have been dropped or forgotten in the meantime.
            queue.take(hash);
        }
        queue.tidy();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Every change of the queue is complete before anything can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn take(&mut self, hash: &Hash) -> bool {
        let Some(entry) = self.entries.remove(hash) else {
            return false;
        };
        self.total -= entry.bytes.len();
        if entry.needed {
            self.needed_total -= entry.bytes.len();
        }
        true
    }

    fn need(&mut self, hash: Hash) {
        if let Some(entry) = self.entries.get_mut(&hash).filter(|entry| !entry.needed) {
            entry.needed = true;
            self.needed_total += entry.bytes.len();
            self.needed.push_back(hash);
        }
    }

    /// Drops the oldest while there are too many bytes.
    fn shrink(&mut self) {
        while self.total - self.needed_total > WAITING_BYTES {
            let Some(hash) = self.order.pop_front() else {
                break;
            };
            if self.entries.get(&hash).is_some_and(|entry| !entry.needed) {
                self.dropped |= self.take(&hash);
            }
        }
        while self.needed_total > NEEDED_BYTES {
            let Some(hash) = self.needed.pop_front() else {
                break;
            };
            self.dropped |= self.take(&hash);
        }
    }

    /// Forgets the places of those that are gone.
    fn tidy(&mut self) {
        if self.entries.is_empty() {
            // After a storm the room for what waited is larger than all else.
            *self = Self {
                dropped: self.dropped,
                ..Self::default()
            };
            return;
        }
        let entries = &self.entries;
        for (order, needed) in [(&mut self.order, false), (&mut self.needed, true)] {
            while order
                .front()
                .is_some_and(|hash| entries.get(hash).is_none_or(|entry| entry.needed != needed))
            {
                order.pop_front();
            }
        }
    }
}
