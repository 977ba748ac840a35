//! Other Unixes have no such handle: what is looked at is opened for reading,
//! without waiting for anybody.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The least that opens something.
pub(crate) const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// The number of the device that a name is on, links not followed.
pub(crate) fn device(name: &Path) -> Option<u64> {
    name.symlink_metadata().ok().map(|found| found.dev())
}
