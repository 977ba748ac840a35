//! Where a file cannot be exchanged for another by their names, nor looked at
//! again without one: guarded writes are refused rather than made unguarded.

mod names;
mod settings;

use std::path::Path;
use std::time::Instant;

use touchmark_engine::{WriteOrder, WriteOutcome};
use touchmark_proto::writes::{RecoveryItems, RecoveryRestored, RecoveryShown};
use touchmark_proto::{Error, ErrorCode, RelPath};

use crate::content::Reader;
use crate::time::Timeline;

pub use self::names::is_temporary;
pub use self::settings::{Keep, Kept, Settings};

/// Writes nothing.
#[derive(Debug)]
pub struct Guard;

/// How many contents are kept in a state directory: none ever was.
pub fn kept(_state: &Path) -> usize {
    0
}

fn refused() -> Error {
    Error::new(
        ErrorCode::MethodNotFound,
        "touchmark does not write files on this system yet",
    )
    .hint("write the file yourself, between `edit/begin` and `edit/commit`")
}

impl Guard {
    /// There is nothing to open.
    ///
    /// # Errors
    /// None here.
    pub fn open(
        _settings: Settings,
        _reader: Reader,
        _time: Timeline,
    ) -> Result<Self, crate::Error> {
        Ok(Self)
    }

    /// Refuses.
    pub fn write(&self, _order: &WriteOrder) -> WriteOutcome {
        WriteOutcome::Failed(refused())
    }

    /// Nothing is held.
    pub fn look_again(&self, _only: Option<&RelPath>) {}

    /// Nothing is held.
    pub fn holds_any(&self) -> bool {
        false
    }

    /// Nothing is held.
    pub fn next_end(&self) -> Option<Instant> {
        None
    }

    /// Nothing is kept.
    pub fn take_late(&self) -> Vec<Kept> {
        Vec::new()
    }

    /// `recovery/list`.
    ///
    /// # Errors
    /// For an id.
    pub fn list(&self, id: Option<&str>) -> Result<RecoveryItems, Error> {
        match id {
            Some(_) => Err(refused()),
            None => Ok(RecoveryItems { items: Vec::new() }),
        }
    }

    /// `recovery/show`.
    ///
    /// # Errors
    /// Always.
    pub fn show(&self, _id: &str, _limit: u64) -> Result<RecoveryShown, Error> {
        Err(refused())
    }

    /// `recovery/restore`.
    ///
    /// # Errors
    /// Always.
    pub fn restore(&self, _id: &str) -> Result<RecoveryRestored, Error> {
        Err(refused())
    }

    /// `recovery/delete`.
    ///
    /// # Errors
    /// Always.
    pub fn delete(&self, _id: &str) -> Result<RecoveryItems, Error> {
        Err(refused())
    }
}
