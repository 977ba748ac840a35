//! Unix systems other than Linux have no handle without opening: a name is
//! opened for reading, without blocking.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The flags that open a name with the least effect.
pub(crate) const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// The file system that a name is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystem {
    /// The number of the device.
    pub(crate) device: u64,
}

impl FileSystem {
    /// Returns whether both names are on one file system.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.device == other.device
    }
}

/// Returns the file system that a name is on, without following links.
pub(crate) fn file_system(name: &Path) -> Option<FileSystem> {
    let device = name.symlink_metadata().ok()?.dev();
    Some(FileSystem { device })
}
