//! The settings of a guard, and the type of its reports.

use std::path::PathBuf;

use touchmark_engine::patterns::Patterns;
use touchmark_proto::{Millis, RelPath};

/// How much is stored for how long: `recovery.keep` and `recovery.ignored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Items older than this are removed, in milliseconds.
    pub age: Millis,
    /// The size limit of all items in bytes. Beyond it, the oldest are removed.
    pub bytes: u64,
    /// The size limit in bytes of the contents of ignored files; 0 for none of
    /// them. Beyond it, the oldest are removed.
    pub ignored: u64,
}

/// Bytes that were stored: the path of their file, and the absolute path of the
/// copy.
pub type KeptBytes = (RelPath, String);

/// The settings of a guard.
#[derive(Debug)]
pub struct Settings {
    /// The canonical path of the workspace.
    pub root: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// How much is stored for how long.
    pub keep: Keep,
    /// All writes are synced (DUR-1, `durability = "power"`).
    pub durable: bool,
    /// The state directory can be written to. If not, writes that were not
    /// completed stay as they are, since nothing could be stored (LOSS-3).
    pub writable: bool,
    /// Paths that are never written to (SEC-10).
    pub protected: Patterns,
    /// The maximum size of all stored contents, in bytes (`contents.total`).
    pub contents_total: u64,
}
