//! Examines a name without opening the object behind it.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, makedev, statx};

/// The flags for a handle on a name that opens nothing.
pub(crate) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The file system that a name is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSystem {
    /// The number of the device.
    pub(crate) device: u64,
    /// The number of the mount. `None` if the system does not report it (before
    /// Linux 5.8).
    mount: Option<u64>,
}

impl FileSystem {
    /// Returns whether both names are on one file system. Each subvolume of
    /// btrfs has a device number of its own, but no mount.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.device == other.device || (self.mount.is_some() && self.mount == other.mount)
    }
}

/// Returns the file system that a name is on, without following links and
/// without a request to a file system that may not answer.
pub(crate) fn file_system(name: &Path) -> Option<FileSystem> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, name, flags, StatxFlags::MNT_ID).ok()?;
    let has_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Some(FileSystem {
        device: makedev(found.stx_dev_major, found.stx_dev_minor),
        mount: has_mount.then_some(found.stx_mnt_id),
    })
}
