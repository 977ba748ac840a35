//! Reads of large files on other threads. A read ends early once nothing needs
//! it: its client is gone, or its path is not tracked any more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use touchmark_proto::RelPath;

/// The paths that are being read, or wait to be, each with whether the read was
/// given up. At most one read of a path is in progress (SYNC-1).
#[derive(Clone, Debug, Default)]
pub(super) struct LargeReads(Arc<Mutex<BTreeMap<RelPath, bool>>>);

impl LargeReads {
    /// Notes that a read of a path was queued.
    pub(super) fn queued(&self, path: &RelPath) {
        self.locked().insert(path.clone(), false);
    }

    /// Notes whether a read of a path is needed, if one is in progress.
    pub(super) fn need(&self, path: &RelPath, is_needed: bool) {
        if let Some(given_up) = self.locked().get_mut(path) {
            *given_up = !is_needed;
        }
    }

    /// Returns whether the read of a path is still needed.
    pub(super) fn is_needed(&self, path: &RelPath) -> bool {
        self.locked().get(path) == Some(&false)
    }

    /// Notes that the read of a path has ended. Returns whether it was needed
    /// to the end.
    pub(super) fn ended(&self, path: &RelPath) -> bool {
        self.locked().remove(path) == Some(false)
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<RelPath, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
