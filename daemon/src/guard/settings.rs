//! What a guard is told, and what it tells of kept bytes.

use std::path::PathBuf;

use touchmark_engine::patterns::Patterns;
use touchmark_proto::{Millis, RelPath};

/// How much is kept for how long: `recovery.keep`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Older ones go.
    pub age: Millis,
    /// While there is more than this in bytes, the oldest goes.
    pub bytes: u64,
}

/// Bytes that were kept: of which file, and their absolute path.
pub type KeptBytes = (RelPath, String);

/// What a guard is to know.
#[derive(Debug)]
pub struct Settings {
    /// The canonical path of the workspace.
    pub root: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// How much is kept for how long.
    pub keep: Keep,
    /// Everything is synced (DUR-1, `durability = "power"`).
    pub durable: bool,
    /// The state directory can be written to. If not, nothing that was left
    /// undone is settled: what that takes could not be kept (LOSS-3).
    pub writable: bool,
    /// What is not written to (SEC-10).
    pub protected: Patterns,
}
