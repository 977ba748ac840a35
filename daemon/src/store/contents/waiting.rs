//! Contents in memory, to be written when the writer is idle.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use touchmark_engine::Record;
use touchmark_proto::Hash;

use super::{Spool, needed};

/// The most bytes of contents that wait in memory. Beyond it the oldest are
/// dropped.
const WAITING_BYTES: usize = 16 << 20;

/// The most bytes of contents in memory, and of the spool, that an undo needs;
/// they are dropped only beyond it. The writer gives them precedence, so
/// that they do not accumulate.
const NEEDED_BYTES: usize = 256 << 20;

/// The most bytes that one transaction writes (or one content, if it is
/// larger). So a turn's commit does not wait long for it.
const BATCH_BYTES: usize = 256 << 10;

/// The most bytes that one transaction writes after a storm, when requests wait
/// for much more than one transaction. Writing more contents together is
/// cheaper, since more of their index entries share a page.
const LARGE_BATCH_BYTES: usize = 1 << 20;

/// The most contents of one transaction. It ends after some milliseconds, and
/// most of more small ones would be looked up for nothing.
const BATCH: usize = 512;

/// Contents that are pending, which can be read already, and the hashes of
/// secrets, which are never written.
pub(in super::super) struct Waiting {
    largest: u64,
    /// Locked before the queue where both are needed.
    spool: Mutex<Spool>,
    queue: Mutex<Queue>,
    secrets: Mutex<Secrets>,
}

/// Hashes of contents that were met as a secret.
#[derive(Default)]
struct Secrets {
    known: HashSet<Hash>,
    /// Hashes that the table does not have yet.
    new: Vec<Hash>,
}

struct Entry {
    bytes: Arc<[u8]>,
    /// A change by an agent needs this content.
    needed: bool,
}

#[derive(Default)]
struct Queue {
    entries: HashMap<Hash, Entry>,
    /// All hashes in the order in which they were added; some may have been
    /// removed, or moved to `needed`.
    order: VecDeque<Hash>,
    /// The needed hashes in the order in which they became needed; some may
    /// have been removed.
    needed: VecDeque<Hash>,
    /// How many of the first hashes of `needed` are in the spool.
    spooled: usize,
    total: usize,
    needed_total: usize,
    /// Contents were dropped since the last [`Waiting::take_dropped`].
    dropped: bool,
}

impl Waiting {
    /// Creates a queue of what an earlier run left in the spool. `secrets` are
    /// the hashes that the table has.
    pub(in super::super) fn new(
        largest: u64,
        secrets: impl IntoIterator<Item = Hash>,
        mut spool: Spool,
    ) -> Self {
        let secrets = Secrets {
            known: secrets.into_iter().collect(),
            new: Vec::new(),
        };
        let waiting = Self {
            largest,
            spool: Mutex::default(),
            queue: Mutex::default(),
            secrets: Mutex::new(secrets),
        };
        let mut secret = false;
        spool.recover(|hash, bytes| {
            secret |= waiting.is_secret(&hash);
            waiting.keep(hash, bytes.into());
            let mut queue = waiting.lock();
            queue.need(hash);
            queue.shrink();
            queue.spooled = queue.needed.len();
        });
        // A loss of power may have brought a secret back.
        if secret || waiting.lock().needed.is_empty() {
            spool.clear();
        }
        *waiting.spool() = spool;
        waiting
    }

    /// From now on the content is not stored, under any path. Returns whether
    /// the writer has to be notified.
    pub(in super::super) fn keep_out(&self, hash: Hash) -> bool {
        let mut secrets = self.secrets();
        if !secrets.known.insert(hash) {
            return false;
        }
        secrets.new.push(hash);
        drop(secrets);
        let mut spool = self.spool();
        self.lock().take(&hash);
        spool.erase(&hash);
        true
    }

    /// Returns whether the content was met as a secret.
    pub(in super::super) fn is_secret(&self, hash: &Hash) -> bool {
        self.secrets().known.contains(hash)
    }

    /// Returns whether a content of `size` bytes is too large to be stored.
    pub(in super::super) fn is_too_large(&self, size: u64) -> bool {
        size > self.largest
    }

    /// Returns whether there are secrets that the table does not have.
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

    /// Adds a content. Returns whether the writer has to be notified.
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

    /// Protects the contents that an undo of these facts needs from being dropped
    /// (KEEP-3).
    pub(in super::super) fn heed(&self, records: &[Record]) {
        let needed: Vec<Hash> = records
            .iter()
            .flat_map(|record| needed(&record.fact))
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

    /// Appends the needed contents to the spool that it does not have yet. The
    /// writer calls this before it commits the facts that need them.
    pub(in super::super) fn spool_needed(&self) {
        loop {
            // A reader must not wait for more than one content.
            let mut spool = self.spool();
            let Some((hash, bytes)) = self.lock().next_to_spool() else {
                return;
            };
            spool.add(&hash, &bytes, NEEDED_BYTES as u64);
        }
    }

    /// Removes all contents from the spool. They still wait in memory. Returns
    /// whether there were any.
    pub(in super::super) fn empty_spool(&self) -> bool {
        let mut spool = self.spool();
        let any = spool.length() > 0;
        spool.clear();
        any
    }

    /// Returns a pending content.
    pub(in super::super) fn get(&self, hash: &Hash) -> Option<Arc<[u8]>> {
        let queue = self.lock();
        queue
            .entries
            .get(hash)
            .map(|entry| Arc::clone(&entry.bytes))
    }

    pub(in super::super) fn clear(&self) {
        let mut spool = self.spool();
        *self.lock() = Queue::default();
        spool.clear();
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Returns whether so many needed contents are pending, or the spool has
    /// grown so much since none was, that the writer must not wait until it is
    /// idle.
    pub(in super::super) fn is_urgent(&self) -> bool {
        let spooled = self.spool().length();
        spooled > WAITING_BYTES as u64 || self.lock().needed_total > WAITING_BYTES / 2
    }

    /// Returns whether contents were dropped since the last call.
    pub(super) fn take_dropped(&self) -> bool {
        std::mem::take(&mut self.lock().dropped)
    }

    /// Returns as many contents as one transaction writes: needed ones first,
    /// and the oldest of each kind first. They stay in the queue until
    /// [`written`](Self::written).
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
            if total > most && !batch.is_empty() || batch.len() == BATCH {
                break;
            }
            batch.push((*hash, Arc::clone(&entry.bytes)));
        }
        batch
    }

    pub(super) fn written<'a>(&self, hashes: impl IntoIterator<Item = &'a Hash>) {
        let mut spool = self.spool();
        let mut queue = self.lock();
        for hash in hashes {
            // It may have been dropped or forgotten in the meantime.
            queue.take(hash);
        }
        queue.tidy();
        let done = queue.needed.is_empty();
        drop(queue);
        if done {
            spool.clear();
        }
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A poisoned lock is usable: each change of the queue is complete
        // before anything can panic.
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

    /// Returns the oldest needed content that is not in the spool. From now on
    /// it counts as being there.
    fn next_to_spool(&mut self) -> Option<(Hash, Arc<[u8]>)> {
        loop {
            let hash = *self.needed.get(self.spooled)?;
            self.spooled += 1;
            if let Some(entry) = self.entries.get(&hash).filter(|entry| entry.needed) {
                return Some((hash, Arc::clone(&entry.bytes)));
            }
        }
    }

    /// Removes the oldest hash that is or was needed.
    fn pop_needed(&mut self) -> Option<Hash> {
        self.spooled = self.spooled.saturating_sub(1);
        self.needed.pop_front()
    }

    /// Drops the oldest contents while there are too many bytes.
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
            let Some(hash) = self.pop_needed() else {
                break;
            };
            self.dropped |= self.take(&hash);
        }
    }

    /// Removes the hashes of removed contents from the order.
    fn tidy(&mut self) {
        if self.entries.is_empty() {
            // Frees the memory: after a storm, the empty maps would be larger
            // than the rest of the daemon's state.
            *self = Self {
                dropped: self.dropped,
                ..Self::default()
            };
            return;
        }
        let waits = |queue: &Self, hash: &Hash, needed| {
            let entry = queue.entries.get(hash);
            entry.is_some_and(|entry| entry.needed == needed)
        };
        while let Some(hash) = self.order.front()
            && !waits(self, hash, false)
        {
            self.order.pop_front();
        }
        while let Some(hash) = self.needed.front()
            && !waits(self, hash, true)
        {
            self.pop_needed();
        }
    }
}
