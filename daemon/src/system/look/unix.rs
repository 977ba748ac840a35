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

/// Returns the number of the device that a name is on, without following links.
pub(crate) fn device(name: &Path) -> Option<u64> {
    name.symlink_metadata().ok().map(|found| found.dev())
}
