//! Examines a name without opening the object behind it.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, makedev, statx};

/// The flags for a handle on a name that opens nothing.
pub(crate) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Returns the number of the device that a name is on, without following links
/// and without a request to a file system that may not answer.
pub(crate) fn device(name: &Path) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, name, flags, StatxFlags::empty()).ok()?;
    Some(makedev(found.stx_dev_major, found.stx_dev_minor))
}
