//! Where the system has no table of mounts: only what makes an event is
//! noticed.

use std::path::{Path, PathBuf};

/// Of which nothing is known.
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

/// Silent.
#[derive(Debug)]
pub struct MountBell;

impl MountBell {
    /// Needs nothing here.
    pub fn open() -> Self {
        Self
    }

    /// Never comes back.
    pub async fn rung(&self) {
        std::future::pending().await
    }
}
