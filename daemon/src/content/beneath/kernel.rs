//! What Linux does by itself.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::DecInt;
use touchmark_proto::RelPath;

use crate::system::look::LOOK;

/// Where this process's descriptors have names. Looked up once: the way there
/// is longer than that to most files.
static DESCRIPTORS: LazyLock<Result<OwnedFd, Errno>> =
    LazyLock::new(|| rustix::fs::open("/proc/self/fd", LOOK | OFlags::DIRECTORY, Mode::empty()));

/// Reading that never waits for a writer or a lease and never gains a
/// terminal, should the file have become something else at the last moment.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Resolution by the kernel, which refuses to leave `top` and to follow a
/// symlink at any step.
pub(super) fn by_kernel(top: &OwnedFd, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut result = Err(Errno::AGAIN);
    // EAGAIN: something was renamed meanwhile, so `..` could not be trusted.
    for _ in 0..32 {
        result = rustix::fs::openat2(
            top,
            path.as_bytes(),
            flags,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        );
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

/// The very inode that was looked at, whatever its name leads to by now.
pub(super) fn reopen(
    handle: &File,
    again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let number = DecInt::new(handle.as_fd().as_raw_fd());
    let by_number = match &*DESCRIPTORS {
        Ok(descriptors) => rustix::fs::openat(descriptors, number, READ, Mode::empty()),
        Err(errno) => Err(*errno),
    };
    match by_number {
        // Where no /proc is mounted the name has to do. What it leads to now
        // counts if it is the same file still; the handle keeps its number
        // from being given to another.
        Err(Errno::NOENT) => {
            let file = again(READ)?;
            let (before, now) = (rustix::fs::fstat(handle)?, rustix::fs::fstat(&file)?);
            if (before.st_dev, before.st_ino) == (now.st_dev, now.st_ino) {
                Ok(file)
            } else {
                Err(Errno::AGAIN)
            }
        }
        opened => opened,
    }
}
