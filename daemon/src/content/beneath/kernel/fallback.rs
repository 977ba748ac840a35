//! Other Unixes leave it to us.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use touchmark_proto::RelPath;

/// There is no such call.
pub(super) fn by_kernel(_top: &OwnedFd, _path: &RelPath, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// What was looked at was opened for that, and can be read.
pub(super) fn reopen(
    handle: &File,
    _again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    rustix::io::dup(handle)
}
