//! Opening with Linux's own calls.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::DecInt;
use touchmark_proto::RelPath;

use crate::system::look::LOOK;

/// The directory of this process's descriptors. Opened once, since resolving
/// its path takes longer than resolving that of most files.
static DESCRIPTORS: LazyLock<Result<OwnedFd, Errno>> =
    LazyLock::new(|| rustix::fs::open("/proc/self/fd", LOOK | OFlags::DIRECTORY, Mode::empty()));

/// Flags for reading, in case the file was replaced by something else at the
/// last moment: never wait for a writer or a lease, never acquire a controlling
/// terminal.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Lets the kernel resolve the path. It refuses to leave `top` and to follow a
/// symlink at any step.
pub(super) fn by_kernel(top: &OwnedFd, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut result = Err(Errno::AGAIN);
    // EAGAIN: an entry was renamed meanwhile, so the kernel could not trust
    // `..`.
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

/// Opens the same inode for reading, even if its name resolves to another one
/// by now.
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
        // Without /proc the file is opened by its name. It is accepted if it is
        // still the same file; no other file can get its inode number while the
        // handle is open.
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
