//! The store: every fact that the engine recorded, in SQLite.
//!
//! # Threads and connections
//!
//! - The **writer** thread owns the only connection that writes. It puts all
//!   queued turns into one transaction, commits it, and then reports each turn
//!   (DUR-1). With [`Durability::Process`] a commit is in the system's page
//!   cache and survives `kill -9`; with [`Durability::Power`] it is synced
//!   first.
//! - Between commits, when nothing is queued, the writer does **chores** in
//!   small transactions: stored contents, parts of a snapshot, deletions. A
//!   commit waits for at most one of them.
//! - The **upkeep** thread has a separate connection. It copies the write-ahead
//!   log back into the file at a limited pace, empties the log when nothing is
//!   written, and looks for versions to prune.
//! - A [`Reader`] is a read-only connection for lookups. It never waits for the
//!   writer, and the writer never waits for it.
//!
//! # When commits fail (LOSS-3)
//!
//! When a commit fails, the engine's state already contains the turn's facts.
//! If the facts were dropped, memory and file would differ from then on. So the
//! writer keeps them, in order, and tries again: with each later turn once a
//! short delay is over, and without a turn when the delay ends.
//!
//! Every turn is reported once: as [`StoreEvent::Failed`] if it could not be
//! stored when it arrived. Once all pending facts are stored,
//! [`StoreEvent::Recovered`] follows. A turn without facts is always reported
//! as committed, so queries are still answered.
//!
//! The pending facts are lost only if the daemon ends before they are stored.
//! The next start then begins a new epoch, since clocks that were answered may
//! name them. Where the failure cannot be noted in the high-water mark,
//! [`StoreEvent::Reopen`] makes the daemon open the store again, with a new
//! epoch, before any of those clocks is answered.
//!
//! Lookups also find the pending facts (`unstored.rs`). A daemon that *starts*
//! where SQLite cannot open its files for writing reads what it can and stores
//! nothing (`refused.rs`), until it can.
//!
//! # When the file cannot be trusted (DUR-2)
//!
//! Two kinds of damage are distinguished. In the first, a single record differs
//! from what was stored, is no fact, or is missing between two others, and
//! SQLite's own check finds nothing. That record is left out and moved to a
//! separate table (`unreadable.rs`). Everything else stays, and a new epoch
//! begins. A snapshot is such a record. Without it, the state is folded from
//! the log's baselines and versions.
//!
//! The file is damaged as a whole if SQLite cannot read it, if its check finds
//! something (the check always runs after an unclean end), or if facts that
//! were answered are missing at the end (`high_water_mark.rs`), since it cannot
//! be known what else is missing. Then everything that belongs to it is renamed
//! to `store.db.damaged-<time>...`, never deleted, and an empty store with a
//! new epoch replaces it. After a power cut without [`Durability::Power`] the
//! newest facts may be missing without any damage: the other facts stay, and a
//! new epoch begins.
//!
//! # Files
//!
//! `store.db`, `store.db-wal` and `store.db-shm` are SQLite's, `store.last` is
//! the high-water mark, `store.spool` has contents that are not in `store.db`
//! yet (`contents/spool.rs`). All are in [`Options::directory`], readable by the
//! user alone.

mod checks;
mod chores;
mod contents;
mod error;
mod exports;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/spool.rs"]
pub(crate) mod fuzzed;
mod high_water_mark;
mod load;
mod mend;
mod message;
mod options;
mod reader;
mod refused;
mod schema;
mod seal;
mod unreadable;
mod unstored;
mod upkeep;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use touchmark_engine::Record;
use touchmark_proto::Hash;

pub use contents::{CheckpointContents, Extent, WhyNot};
pub use error::StoreError;
pub use exports::{Exports, Progress};
pub use message::{PINNED, Prune, StoreEvent};
pub use options::{Durability, Options};
pub use reader::{Reader, Readers};

use chores::Chores;
use contents::{Asked, Spool, Table, Waiting};
use load::Loaded;
use message::Message;
use options::{beside, file};
use unstored::Unstored;
use upkeep::{Nudge, Upkeep, Work};
use writer::{Shared, Writer};

/// The result of opening the store.
pub struct Opened {
    /// The store, running.
    pub store: Store,
    /// The epoch of clocks; a new one if facts were lost.
    pub epoch: u64,
    /// The newest snapshot, as it was passed to [`Store::snapshot`]; `None` if
    /// there is none.
    pub snapshot: Option<Vec<u8>>,
    /// Every fact after the snapshot, oldest first.
    pub facts: Vec<Record>,
    /// The number of the newest fact ever stored, 0 if none.
    pub last: u64,
    /// Clocks before this fact are unknown, since versions were pruned up to
    /// here.
    pub pruned: u64,
    /// What was lost or set aside, for `status`; `None` if nothing.
    pub trouble: Option<String>,
    /// Facts, or the snapshot, were left out since they could not be read, so
    /// the state may be incomplete.
    pub left_out: bool,
    /// Facts are being exported, as the last run noted.
    pub exporting: bool,
    /// Why nothing can be stored, if the store could not be opened for writing.
    /// The epoch is then valid for this run only, and [`StoreEvent::Reopen`]
    /// reports when to open the store again.
    pub refused: Option<String>,
}

/// The store of one workspace. Its methods return immediately, except
/// [`close`](Self::close) and [`reader`](Self::reader). A short
/// [`commit`](Self::commit) is done when it returns.
pub struct Store {
    path: PathBuf,
    durability: Durability,
    waiting: Arc<Waiting>,
    unstored: Arc<Unstored>,
    /// The number of records found that cannot be read.
    unreadable: Arc<AtomicU64>,
    /// How much content is stored; `None` until the table was first looked at.
    extent: Arc<Mutex<Option<Extent>>>,
    /// The number of facts that were dropped before they were exported.
    unexported: Arc<AtomicU64>,
    /// The store was opened for writing.
    writable: bool,
    /// Whether a turn may be stored on the caller's thread.
    at_once: bool,
    /// `None` if nothing can be stored.
    shared: Option<Shared>,
    writer: Sender<Message>,
    /// `None` after the shutdown, which ends the upkeep thread.
    upkeep: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
}

/// Opens the store in `options.directory`, whatever state it is in, and starts
/// its threads. `on_event` is called on the writer's thread.
///
/// # Errors
/// [`StoreError::Incompatible`], which leaves the store as it is;
/// [`StoreError::Storage`] if a thread cannot be started. Damage is not an
/// error, nor is a directory that cannot be written to: see [`Opened::trouble`]
/// and [`Opened::refused`].
pub fn open(
    options: &Options,
    on_event: impl Fn(StoreEvent) + Send + 'static,
) -> Result<Opened, StoreError> {
    let Loaded {
        connection,
        mark,
        epoch,
        snapshot,
        facts,
        last,
        pruned,
        trouble,
        left_out,
        unreadable,
        secrets,
    } = match load::load(options) {
        Err(StoreError::Storage { cause }) => return refused::open(options, cause, on_event),
        loaded => loaded?,
    };
    let path = file(&options.directory);
    let purge = schema::meta::<i64>(&connection, chores::PURGE)?.is_some();
    let spool = Spool::open(
        &options.directory.join("store.spool"),
        options.contents_total > 0,
    );
    let waiting = Arc::new(Waiting::new(options.contents_file, secrets, spool));
    let unstored = Arc::new(Unstored::default());
    let unreadable = Arc::new(AtomicU64::new(unreadable));
    let unexported = Arc::new(AtomicU64::new(exports::dropped(&connection)?));
    let exporting = exports::are_under_way(&connection)?;
    let table = Table::new(options.contents_total);
    let extent = table.shown();

    let (writer, messages) = channel();
    let (upkeep, work) = channel();
    let nudge = Nudge::new(upkeep.clone());
    // For the log that a crash left, and the chores that it interrupted.
    nudge.written();
    let upkeeper = Upkeep::new(&path, options.checkpoint_pace, work, &nudge, writer.clone());
    let worker = Writer::new(
        connection,
        mark,
        Chores::new(
            Arc::clone(&waiting),
            table,
            Arc::clone(&unreadable),
            exports::Dropped {
                count: Arc::clone(&unexported),
                is_exported: options.is_exported,
            },
            purge,
        ),
        Arc::clone(&unstored),
        nudge,
    );
    let shared = Shared::new(worker);
    let thread = shared.clone();
    let threads = vec![
        std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || thread.run(&messages, on_event))?,
        std::thread::Builder::new()
            .name("store-upkeep".into())
            .spawn(move || upkeeper.run())?,
    ];
    Ok(Opened {
        store: Store {
            path,
            durability: options.durability,
            waiting,
            unstored,
            unreadable,
            unexported,
            extent,
            writable: true,
            // A sync takes long, and the caller's thread could answer no client
            // meanwhile.
            at_once: options.durability == Durability::Process,
            shared: Some(shared),
            writer,
            upkeep: Some(upkeep),
            threads,
        },
        epoch,
        snapshot,
        facts,
        last,
        pruned,
        trouble,
        left_out,
        exporting,
        refused: None,
    })
}

impl Store {
    /// Stores a turn's facts. The numbers of turns increase. Events that are
    /// certain before this returns are passed to `report`, later ones to the
    /// `on_event` of [`open`].
    pub fn commit(&self, turn: u64, mut records: Vec<Record>, mut report: impl FnMut(StoreEvent)) {
        self.waiting.heed(&records);
        if let Some(shared) = &self.shared {
            // Much to spool would occupy the caller's thread for long.
            if self.at_once && !self.waiting.is_urgent() {
                records = match shared.commit(turn, records, &mut report) {
                    Ok(true) => return,
                    Ok(false) => return self.send(Message::Look),
                    Err(records) => records,
                };
            }
            shared.queued();
        }
        self.send(Message::Commit { turn, records });
    }

    /// Stores a content, unless it is larger than the limit. It can be read
    /// back immediately. It is written when the writer has nothing else to do.
    /// Until then a crash may lose it, unless an agent's change needs it.
    pub fn keep(&self, hash: Hash, bytes: Arc<[u8]>) {
        if self.waiting.keep(hash, bytes) {
            self.send(Message::Look);
        }
    }

    /// Removes a content, and never stores it again under any path (SEC-3).
    pub fn keep_out(&self, hash: Hash) {
        if self.waiting.keep_out(hash) {
            self.send(Message::Look);
        }
    }

    /// Pins the contents that a checkpoint names (KEEP-2), after the turns
    /// passed before are stored. A crash immediately afterwards may lose the
    /// pins.
    pub fn pin_checkpoint(&self, named: CheckpointContents) {
        // In parts, since a commit has to wait for at most one part.
        for part in named.hashes.chunks(256) {
            self.send(Message::Contents(Asked::Pin(part.to_vec(), named.time)));
        }
        self.send(Message::Contents(Asked::Checkpoint(named)));
    }

    /// Stores the engine's state up to fact `n`. It is written part by part,
    /// after the turns passed before, and is valid once it is whole. Facts up
    /// to `n` are then dropped, except baselines and versions.
    pub fn snapshot(&self, n: u64, body: Vec<u8>) {
        self.send(Message::Snapshot { n, body });
    }

    /// Drops old versions, part by part. Only facts that a snapshot covers are
    /// ever dropped.
    pub fn prune(&self, prune: Prune) {
        self.send(Message::Contents(Asked::Expire(prune.pinned_before)));
        if let Some(upkeep) = &self.upkeep {
            // The upkeep thread ends only after this store has been shut down.
            let _ = upkeep.send(Work::Prune(prune));
        }
    }

    /// Rewrites the file without deleted data (SEC-3), once the snapshot passed
    /// last is in it. If the daemon ends before that, the next start does it.
    pub fn purge(&self) {
        self.send(Message::Purge);
    }

    /// Removes every stored content, rewrites the file (SEC-3), and then calls
    /// `done`.
    pub fn forget_contents(&self, done: impl FnOnce() + Send + 'static) {
        self.waiting.clear();
        self.send(Message::ForgetContents(Box::new(done)));
    }

    /// Returns what opens connections for reading.
    pub fn readers(&self) -> Readers {
        Readers {
            path: self.path.clone(),
            writable: self.writable,
            unstored: Arc::clone(&self.unstored),
            waiting: Arc::clone(&self.waiting),
            writer: self.writer.clone(),
        }
    }

    /// Stores and reports all turns passed before, copies SQLite's log into the
    /// file, and ends the threads.
    pub fn close(mut self) {
        self.shut();
    }

    /// Returns the queue of facts that are exported. `None` if nothing can be
    /// stored.
    pub fn exports(&self) -> Option<Exports> {
        self.writable
            .then(|| Exports::new(self.readers(), Arc::clone(&self.unexported)))
    }

    /// Returns the store's file, its size including its log in bytes, and the
    /// name of the durability, for `status`.
    pub fn status(&self) -> (PathBuf, u64, &'static str) {
        let size = [self.path.clone(), beside(&self.path, "-wal")]
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|metadata| metadata.len())
            .sum();
        (self.path.clone(), size, self.durability.name())
    }

    /// Returns how much content is stored, without contents still in memory.
    /// `None` just after the start, and if nothing can be stored.
    pub fn extent(&self) -> Option<Extent> {
        *self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of records found that cannot be read. They are
    /// stored, and counted, for 30 days.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) {
        // The writer ends only after this store has been shut down.
        let _ = self.writer.send(message);
    }

    fn shut(&mut self) {
        self.send(Message::Close);
        let mut threads = self.threads.drain(..);
        // The writer ends first: its last commits have to be done before the
        // log is closed.
        if let Some(writer) = threads.next() {
            let _ = writer.join();
        }
        self.shared = None;
        self.upkeep = None;
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.shut();
    }
}

/// Sets the snapshot of a closed store aside, since it is not a valid state.
/// [`open`] then reads what the log has (DUR-2).
///
/// # Errors
/// The errors of [`open`], and [`StoreError::Damaged`].
pub fn give_up_snapshot(options: &Options, cause: String) -> Result<(), StoreError> {
    load::give_up_snapshot(options, cause)
}

/// Checks a store that may be in use, without changing it. Returns its size in
/// bytes, or `None` if there is no store.
///
/// # Errors
/// The errors of [`open`], and [`StoreError::Damaged`].
pub fn examine(directory: &Path) -> Result<Option<u64>, StoreError> {
    load::examine(directory)
}

/// Returns the workspace to which a state directory belongs, or `None` if there
/// is no store in it. Changes nothing.
///
/// # Errors
/// The errors of [`open`], and [`StoreError::Damaged`].
pub fn workspace(directory: &Path) -> Result<Option<PathBuf>, StoreError> {
    load::workspace(directory)
}
