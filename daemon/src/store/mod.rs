//! The store: every fact the engine recorded, in SQLite.
//!
//! # Who does what
//!
//! - The **writer** thread owns the one connection that writes. It takes all
//!   turns that are queued into one transaction, commits it, and only then
//!   reports each turn (DUR-1). With [`Durability::Process`] a commit is in
//!   the system's page cache and survives `kill -9`; with
//!   [`Durability::Power`] it is synced first.
//! - Between commits, when nothing is queued, the writer does **chores** in
//!   small transactions: kept contents, parts of a snapshot, deletions. A
//!   commit waits for at most one of them.
//! - The **upkeep** thread has a connection of its own. It copies the
//!   write-ahead log back into the file at a calm pace, empties the log when
//!   nothing is written, and looks for versions to prune.
//! - A [`Reader`] is a read-only connection for whoever asks; it never waits
//!   for the writer, nor the writer for it.
//!
//! # When commits fail (LOSS-3)
//!
//! The engine has already taken a turn's facts into its state when the commit
//! fails, so dropping them would make memory and file differ for good. The
//! writer keeps them, in order, and tries again: with each later turn once a
//! short delay is over, and by itself when no turn comes. Every turn is
//! reported once: [`StoreEvent::Failed`] if it could not be stored when it
//! came. Once everything that waited is stored, [`StoreEvent::Recovered`]
//! follows. A turn without facts is always reported committed, so queries go
//! on. Only if the daemon ends before that are the waiting facts gone; the
//! next start then begins a new epoch, since answered clocks may name them.
//! Where not even that can be noted, [`StoreEvent::Reopen`] asks for another
//! life at once, before any of those clocks is answered.
//! Lookups find the facts that wait, too (`unstored.rs`). A daemon that
//! *starts* where SQLite cannot open its files for writing reads what it can
//! and lives a life that is not stored (`refused.rs`), until it can.
//!
//! # When the file cannot be trusted (DUR-2)
//!
//! Two kinds of damage are told apart. Where a single record is not what was
//! stored, is no fact, or is missing between two others, and SQLite's own
//! check finds nothing, that record is left out and moved to a table of its
//! own (`unreadable.rs`): everything else stays, the epoch is new. A snapshot
//! is such a record; without it the log's baselines and versions are what is
//! known.
//!
//! The file is damaged as a whole where SQLite cannot read it or its check
//! finds something (after an unclean end it is always made), and where facts
//! are missing at the end that were answered (`high_water_mark.rs`): what else is
//! missing cannot be known. Everything that belongs to it is renamed to
//! `store.db.damaged-<time>...`, never deleted, and an empty store with a new
//! epoch takes its place. After a power cut without [`Durability::Power`] the
//! last moments may be missing without any damage: the facts stay, the epoch
//! is new.
//!
//! # Files
//!
//! `store.db`, `store.db-wal`, `store.db-shm` are SQLite's, `store.last` is
//! the high-water mark. All are in [`Options::directory`], readable by the user alone.

mod checks;
mod chores;
mod contents;
mod error;
mod high_water_mark;
mod load;
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
use std::time::Duration;

use touchmark_engine::Record;
use touchmark_proto::{Hash, Millis};

pub use contents::{CheckpointContents, Extent, WhyNot};
pub use error::StoreError;
pub use reader::Reader;

use chores::Chores;
use contents::{Asked, Table, Waiting};
use load::Loaded;
use unstored::Unstored;
use upkeep::{Nudge, Upkeep, Work};
use writer::{Message, Shared, Writer};

/// What an answered change of state survives (DUR-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the daemon, however it ends.
    Process,
    /// The end of the machine's power, too.
    Power,
}

impl Durability {
    /// Its name in the configuration and in `status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}

/// Where and how to store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of this workspace's state; made if it is not there.
    pub directory: PathBuf,
    /// The workspace, noted in the store for whoever lists stores.
    pub workspace: PathBuf,
    /// What a commit survives.
    pub durability: Durability,
    /// Bytes of kept contents as they are stored, all in all: `contents.total`.
    pub contents_total: u64,
    /// Larger contents are not kept: `contents.file`, in bytes.
    pub contents_file: u64,
    /// How long the log rests between two checkpoints.
    pub checkpoint_pace: Duration,
}

impl Options {
    /// The configuration's defaults.
    pub fn new(directory: impl Into<PathBuf>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            workspace: workspace.into(),
            durability: Durability::Process,
            contents_total: 512 << 20,
            contents_file: 4 << 20,
            checkpoint_pace: Duration::from_secs(1),
        }
    }
}

/// What was found when the store was opened.
pub struct Opened {
    /// The store, running.
    pub store: Store,
    /// The life of the state that clocks name; new if something was lost.
    pub epoch: u64,
    /// The newest snapshot, as it was handed in.
    pub snapshot: Option<Vec<u8>>,
    /// Every fact after the snapshot, oldest first.
    pub facts: Vec<Record>,
    /// The number of the newest fact ever stored, 0 if none.
    pub last: u64,
    /// Clocks before this fact are unknown: versions were pruned up to here.
    pub pruned: u64,
    /// What was lost or set aside, for `status`.
    pub trouble: Option<String>,
    /// Facts that the state would rest on were left out, somewhere in their
    /// middle: they could not be read.
    pub left_out: bool,
    /// Why nothing can be stored, if the store could not be opened for
    /// writing. The epoch is then one of this life only, and
    /// [`StoreEvent::Reopen`] says when to open the store again.
    pub refused: Option<String>,
}

/// What the writer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// The turn's facts are stored. Turns are reported in their order.
    Committed {
        /// Which turn.
        turn: u64,
    },
    /// The turn's facts are not stored yet; they are kept and tried again.
    Failed {
        /// Which turn.
        turn: u64,
        /// Why, in the system's words.
        cause: String,
    },
    /// Everything that failed before is stored now.
    Recovered,
    /// The store is to be closed and opened again: it was
    /// [`refused`](Opened::refused) and can be written to by now; or it
    /// cannot be, not even to note that facts wait, and clocks of this epoch
    /// must not be given out for them; or it turned out to be damaged.
    Reopen,
}

/// How long contents are pinned, in milliseconds: 30 days (KEEP-2).
pub const PINNED: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Which versions to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prune {
    /// Keep at most this many newest versions of each path.
    pub keep_per_path: u64,
    /// Drop versions recorded before this time, however few there are.
    pub older_than: Millis,
    /// The oldest fact that somebody may still compare with (the oldest kept
    /// checkpoint): what each path held then is never dropped (CHK-1).
    pub floor: u64,
    /// What was pinned before this time goes like other contents (KEEP-2).
    pub pinned_before: Millis,
}

/// The store of one workspace. Every method returns at once, but
/// [`close`](Self::close) and [`reader`](Self::reader); a short
/// [`commit`](Self::commit) is done by then.
pub struct Store {
    path: PathBuf,
    durability: Durability,
    waiting: Arc<Waiting>,
    unstored: Arc<Unstored>,
    /// Records found that cannot be read.
    unreadable: Arc<AtomicU64>,
    /// How much is kept; not known before a look.
    extent: Arc<Mutex<Option<Extent>>>,
    /// It was opened for writing.
    writable: bool,
    /// Whether the writer may be used on the caller's thread.
    at_once: bool,
    /// `None` where nothing can be stored.
    shared: Option<Shared>,
    writer: Sender<Message>,
    /// `None` once shut, so that the upkeep thread ends.
    upkeep: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
}

/// Opens the store in `options.directory`, whatever state it is in, and
/// starts its threads. `on_event` is called on the writer's thread.
///
/// # Errors
/// [`StoreError::Newer`] leaves the store as it is; [`StoreError::Storage`]
/// where no thread can be started. Damage is not an error, nor is a place that
/// cannot be written to: see [`Opened::trouble`] and [`Opened::refused`].
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
    let waiting = Arc::new(Waiting::new(options.contents_file, secrets));
    let unstored = Arc::new(Unstored::default());
    let unreadable = Arc::new(AtomicU64::new(unreadable));
    let table = Table::new(options.contents_total);
    let extent = table.shown();

    let (writer, messages) = channel();
    let (upkeep, work) = channel();
    let nudge = Nudge::new(upkeep.clone());
    // What a crash left in the log, and chores that it interrupted.
    nudge.written();
    let upkeeper = Upkeep::new(&path, options.checkpoint_pace, work, &nudge, writer.clone())?;
    let worker = Writer::new(
        connection,
        mark,
        Chores::new(Arc::clone(&waiting), table, Arc::clone(&unreadable), purge),
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
            extent,
            writable: true,
            // A sync takes its time, in which nobody else would be answered.
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
        refused: None,
    })
}

impl Store {
    /// Stores a turn's facts. Numbers grow from turn to turn. What is settled
    /// before this returns is told by `report`; what takes longer by the
    /// `on_event` of [`open`].
    pub fn commit(&self, turn: u64, mut records: Vec<Record>, mut report: impl FnMut(StoreEvent)) {
        self.waiting.heed(&records);
        if let Some(shared) = &self.shared {
            if self.at_once {
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

    /// Keeps a content, unless it is larger than the cap. It can be read back
    /// at once; it is written when nothing else is to be done, and may be
    /// lost in a crash.
    pub fn keep(&self, hash: Hash, bytes: Arc<[u8]>) {
        if self.waiting.keep(hash, bytes) {
            self.send(Message::Look);
        }
    }

    /// Keeps a content no longer, nor from now on, under whatever name it
    /// comes (SEC-3).
    pub fn keep_out(&self, hash: Hash) {
        if self.waiting.keep_out(hash) {
            self.send(Message::Look);
        }
    }

    /// Pins what a checkpoint names (KEEP-2), once the turns handed over
    /// before are stored. A crash at once may lose that.
    pub fn pin_checkpoint(&self, named: CheckpointContents) {
        // A commit waits for no more than a part of them.
        for part in named.hashes.chunks(256) {
            self.send(Message::Contents(Asked::Pin(part.to_vec(), named.time)));
        }
        self.send(Message::Contents(Asked::Checkpoint(named)));
    }

    /// Stores the engine's state up to fact `n`. It is written bit by bit
    /// after every turn handed over before, and counts once it is whole;
    /// facts up to `n` are then dropped, but for baselines and versions.
    pub fn snapshot(&self, n: u64, body: Vec<u8>) {
        self.send(Message::Snapshot { n, body });
    }

    /// Drops old versions, bit by bit. Only facts that a snapshot covers are
    /// ever dropped.
    pub fn prune(&self, prune: Prune) {
        self.send(Message::Contents(Asked::Expire(prune.pinned_before)));
        if let Some(upkeep) = &self.upkeep {
            // It ends only after this store has been shut.
            let _ = upkeep.send(Work::Prune(prune));
        }
    }

    /// Writes the file anew, once the snapshot handed over last is in it:
    /// nothing that was deleted can be found in it then (SEC-3). If the daemon
    /// ends before that, the next one does it.
    pub fn purge(&self) {
        self.send(Message::Purge);
    }

    /// Removes every kept content and writes the file anew (SEC-3), and calls
    /// `done` when they are gone.
    pub fn forget_contents(&self, done: impl FnOnce() + Send + 'static) {
        self.waiting.clear();
        self.send(Message::ForgetContents(Box::new(done)));
    }

    /// A read-only connection, for one thread at a time.
    ///
    /// # Errors
    /// [`StoreError::Storage`] where the system refuses.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::new(
            &self.path,
            self.writable,
            Arc::clone(&self.unstored),
            Arc::clone(&self.waiting),
            self.writer.clone(),
        )
    }

    /// Stores and reports everything handed over before, empties the log into
    /// the file, and ends the threads.
    pub fn close(mut self) {
        self.shut();
    }

    /// The store's file, its size with its log in bytes, and the durability,
    /// for `status`.
    pub fn status(&self) -> (PathBuf, u64, &'static str) {
        let size = [self.path.clone(), beside(&self.path, "-wal")]
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .map(|metadata| metadata.len())
            .sum();
        (self.path.clone(), size, self.durability.name())
    }

    /// How much is kept of contents, those that wait in memory left out;
    /// `None` in the first moments, and where nothing can be stored.
    pub fn extent(&self) -> Option<Extent> {
        *self.extent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many records were found that cannot be read; they are kept and
    /// counted for 30 days.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    fn send(&self, message: Message) {
        // The writer ends only after this store has been shut.
        let _ = self.writer.send(message);
    }

    fn shut(&mut self) {
        self.send(Message::Close);
        let mut threads = self.threads.drain(..);
        // The writer first: closing the log is the last thing to happen.
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

/// Puts the snapshot of a closed store aside, since it is no state: [`open`]
/// then reads what the log has (DUR-2).
///
/// # Errors
/// As [`open`], and damage.
pub fn give_up_snapshot(options: &Options, cause: String) -> Result<(), StoreError> {
    load::give_up_snapshot(options, cause)
}

/// Looks at a store that may be in use, without changing it: its size in
/// bytes, or `None` if there is none.
///
/// # Errors
/// As [`open`], and damage.
pub fn examine(directory: &Path) -> Result<Option<u64>, StoreError> {
    load::examine(directory)
}

/// The workspace whose state a directory holds; `None` if there is none.
/// Changes nothing.
///
/// # Errors
/// As [`open`], and damage.
pub fn workspace(directory: &Path) -> Result<Option<PathBuf>, StoreError> {
    load::workspace(directory)
}

/// The store's file in the state directory.
fn file(directory: &Path) -> PathBuf {
    directory.join("store.db")
}

/// A file beside the store's, as SQLite names them.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
