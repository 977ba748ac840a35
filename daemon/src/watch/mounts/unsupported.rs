//! Systems without a table of mounts: only changes with events are noticed.

use std::path::{Path, PathBuf};

/// The mounts in a workspace, of which nothing is known here.
#[derive(Debug)]
pub(super) struct Mounts;

impl Mounts {
    pub(super) fn new(_root: &Path) -> Self {
        Self
    }

    pub(super) fn changed(&mut self) -> Option<Vec<PathBuf>> {
        None
    }

    pub(super) fn remote(&self) -> &[(PathBuf, &'static str)] {
        &[]
    }

    pub(super) fn is_place(&self, _path: &Path) -> bool {
        false
    }

    pub(super) fn of(&self, _path: &Path) -> Option<&Path> {
        None
    }

    pub(super) fn source(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

/// Returns `true`: it is not known.
pub fn has_other_paths(_root: &Path) -> bool {
    true
}

/// Returns `false`: it is not known.
pub fn shows_a_part(_directory: &Path) -> bool {
    false
}

/// A notification of mounts, which never wakes here.
#[derive(Debug)]
pub struct MountBell;

impl MountBell {
    /// Returns the notification. Needs no runtime here.
    pub fn open() -> Self {
        Self
    }

    /// Waits forever.
    pub async fn rung(&self) {
        std::future::pending().await
    }
}
