//! What is sent to the threads of the store, and what they report.

use touchmark_engine::Record;
use touchmark_proto::Millis;

use super::contents::Asked;
use super::exports::Progress;
use super::unreadable::Bad;

/// A message to the writer.
pub(super) enum Message {
    /// Store a turn's facts and report it.
    Commit { turn: u64, records: Vec<Record> },
    /// Contents are pending, or a commit has failed: check what there is to do.
    Look,
    /// Change how contents are stored.
    Contents(Asked),
    /// Store the engine's state.
    Snapshot { n: u64, body: Vec<u8> },
    /// Delete these facts.
    Delete(Vec<i64>),
    /// Move these records aside, since they cannot be read.
    PutAside(Vec<Bad>),
    /// A lookup found the file malformed.
    Malformed(String),
    /// Facts were exported up to here; `None`: none are exported any more.
    Exported(Option<Progress>),
    /// Delete all contents, then call this.
    ForgetContents(Box<dyn FnOnce() + Send>),
    /// Rewrite the file without deleted data.
    Purge,
    /// Store everything and end.
    Close,
}

/// What the writer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreEvent {
    /// The turn's facts are stored. Turns are reported in their order.
    Committed {
        /// The turn's number.
        turn: u64,
    },
    /// The turn's facts are not stored yet. The writer keeps them and tries
    /// again.
    Failed {
        /// The turn's number.
        turn: u64,
        /// The cause, in the system's words.
        cause: String,
    },
    /// All facts whose commits had failed are stored now.
    Recovered,
    /// The store has to be closed and opened again, for one of three causes: it
    /// was [`refused`](super::Opened::refused) and can be written to now; a commit
    /// failed and that could not even be noted, so clocks of this epoch must
    /// not be given out for the pending facts; a commit found it damaged.
    Reopen,
    /// A lookup found the file damaged. The next start keeps what can be read of
    /// it.
    Malformed {
        /// What was found, in SQLite's words.
        cause: String,
    },
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
    /// The oldest fact with which a request may still compare (the oldest
    /// stored checkpoint). The content that each path had then is never dropped
    /// (CHK-1).
    pub floor: u64,
    /// Contents that were pinned before this time are no longer pinned
    /// (KEEP-2).
    pub pinned_before: Millis,
}
