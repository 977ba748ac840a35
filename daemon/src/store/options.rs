//! How a store is opened, and its files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use touchmark_engine::Fact;

/// What an answered change of state survives (DUR-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The daemon's exit, also by `kill -9`.
    Process,
    /// A power failure as well.
    Power,
}

impl Durability {
    /// The name in the configuration and in `status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}

/// The options of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The state directory of this workspace; created if it does not exist.
    pub directory: PathBuf,
    /// The workspace, noted in the store for programs that list stores.
    pub workspace: PathBuf,
    /// What a commit survives.
    pub durability: Durability,
    /// The limit for all stored contents together, in compressed bytes:
    /// `contents.total`.
    pub contents_total: u64,
    /// The size limit of one content, in bytes: `contents.file`. Larger
    /// contents are not stored.
    pub contents_file: u64,
    /// The pause between two checkpoints of SQLite's log.
    pub checkpoint_pace: Duration,
    /// Returns whether a fact is exported. If it is dropped before, it is
    /// counted.
    pub is_exported: fn(&Fact) -> bool,
}

impl Options {
    /// Returns the configuration's defaults.
    pub fn new(directory: impl Into<PathBuf>, workspace: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            workspace: workspace.into(),
            durability: Durability::Process,
            contents_total: 512 << 20,
            contents_file: 8 << 20,
            checkpoint_pace: Duration::from_secs(1),
            is_exported: |_| false,
        }
    }
}

/// Returns the path of the store's file in the state directory.
pub(super) fn file(directory: &Path) -> PathBuf {
    directory.join("store.db")
}

/// Returns the path of a file next to the store's file, as SQLite names them.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
