//! Distinguishes mounts as far as the device's number does.

use std::time::Duration;

/// What has a mount: an open file or directory.
pub(crate) trait Handle {}

impl<T> Handle for T {}

/// What a stat on a mounted file system proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// Always 0: only the device's number is known.
    pub(crate) id: u64,
    /// Whether a stat can prove that a content is unchanged.
    pub(crate) vouches: bool,
}

/// Returns a mount where a stat proves nothing, so that files are read: nothing
/// is known of other mounts.
pub(crate) fn mounted(_file: impl Handle) -> Mounted {
    Mounted {
        id: 0,
        vouches: false,
    }
}

/// Returns the mount of the workspace's own file system, where a stat proves
/// that a content is unchanged.
pub(crate) fn mounted_home(_file: impl Handle) -> Mounted {
    Mounted {
        id: 0,
        vouches: true,
    }
}

/// Returns zero: systems that do not report the time write back sooner than the
/// minimum that applies anyway.
pub(crate) fn dirty_time() -> Option<Duration> {
    Some(Duration::ZERO)
}
