//! Other Unix systems: the path is resolved step by step.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_proto::RelPath;

/// Fails always: there is no such call.
pub(super) fn by_kernel(_top: &OwnedFd, _path: &RelPath, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Duplicates the handle, which was opened for reading already.
pub(super) fn reopen(
    handle: &File,
    _again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    rustix::io::dup(handle)
}
