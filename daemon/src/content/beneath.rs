//! Opening a path without leaving the workspace (SEC-2) and without waking
//! what is not a regular file (LOSS-4).

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use touchmark_proto::RelPath;

use crate::links::{End, resolve};

/// What opening a path came to.
pub(crate) enum Opened {
    /// A regular file, open for reading.
    File {
        file: File,
        /// Its real name, if symlinks led to it.
        real: Option<RelPath>,
    },
    Absent,
    Outside,
    /// Looked at, not opened.
    NotAFile(&'static str),
    Unreadable(String),
    /// What lay on the way changed under the reader; to be tried again.
    Changing,
}

/// Reading that never waits for a writer or a lease and never gains a
/// terminal, should the file have become something else at the last moment.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// A handle on a name that opens nothing.
#[cfg(target_os = "linux")]
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const LOOK: OFlags = READ;

/// Opens a file of the workspace at `root` for reading.
pub(crate) fn open(root: &Path, path: &RelPath) -> Opened {
    // Not held between reads: it would keep the news of the root's removal
    // from coming (LIFE-1).
    let top = match rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty()) {
        Ok(top) => top,
        Err(errno) => return failed(errno),
    };
    #[cfg(target_os = "linux")]
    match by_kernel(&top, path, LOOK) {
        Ok(handle) => return read_handle(handle, None, |flags| by_kernel(&top, path, flags)),
        // A symlink on the way, whose real name is wanted; or a kernel (or a
        // sandbox) without openat2.
        Err(Errno::XDEV | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
        Err(errno) => return failed(errno),
    }
    by_hand(&top, root, path)
}

/// A handle on the directory of that relative name, empty for `root` itself;
/// `None` if it cannot be had, or a symlink lies on the way.
#[cfg(target_os = "linux")]
pub(super) fn directory(root: &Path, name: &[u8]) -> Option<OwnedFd> {
    let top = rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty()).ok()?;
    if name.is_empty() {
        return Some(top);
    }
    let path = RelPath::new(name).ok()?;
    by_kernel(&top, &path, LOOK | OFlags::DIRECTORY).ok()
}

/// Nothing is known of what lies on the way.
#[cfg(not(target_os = "linux"))]
pub(super) fn directory(_root: &Path, _name: &[u8]) -> Option<OwnedFd> {
    None
}

/// Resolution by the kernel, which refuses to leave `top` and to follow a
/// symlink at any step.
#[cfg(target_os = "linux")]
fn by_kernel(top: &OwnedFd, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
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

/// Resolution component by component: first to learn where the links lead,
/// then along the real names without following any.
pub(super) fn by_hand(top: &OwnedFd, root: &Path, path: &RelPath) -> Opened {
    let end = match resolve(root, path, |_| false).end {
        End::There(end, _) => end,
        End::Root => return Opened::NotAFile("directory"),
        End::Missing(_) | End::Loop => return Opened::Absent,
        End::Outside => return Opened::Outside,
        End::Denied(error) => return Opened::Unreadable(error.to_string()),
    };
    let mut directory: Option<OwnedFd> = None;
    let mut names = end.as_bytes().split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let above = directory.as_ref().unwrap_or(top);
        let look = |flags| rustix::fs::openat(above, name, flags | OFlags::NOFOLLOW, Mode::empty());
        let last = names.peek().is_none();
        match look(if last { LOOK } else { LOOK | OFlags::DIRECTORY }) {
            Ok(file) if last => {
                return read_handle(file, Some(end.clone()).filter(|end| end != path), look);
            }
            Ok(next) => directory = Some(next),
            Err(Errno::LOOP | Errno::NOTDIR) => return Opened::Changing,
            Err(errno) => return failed(errno),
        }
    }
    Opened::Absent
}

/// Opens what a handle stands for, if it is a regular file; `again` opens the
/// same name once more.
fn read_handle(
    handle: OwnedFd,
    real: Option<RelPath>,
    again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Opened {
    let handle = File::from(handle);
    let file_type = match handle.metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) => return Opened::Unreadable(error.to_string()),
    };
    if file_type.is_symlink() {
        return Opened::Changing;
    }
    if !file_type.is_file() {
        return Opened::NotAFile(if file_type.is_dir() {
            "directory"
        } else if file_type.is_fifo() {
            "fifo"
        } else if file_type.is_socket() {
            "socket"
        } else {
            "device"
        });
    }
    match reopen(&handle, again) {
        Ok(file) => Opened::File {
            file: file.into(),
            real,
        },
        // Somebody holds a lease that is being broken by this very look.
        Err(Errno::AGAIN) => Opened::Changing,
        Err(errno) => Opened::Unreadable(std::io::Error::from(errno).to_string()),
    }
}

/// The very inode that was looked at, whatever its name leads to by now.
#[cfg(target_os = "linux")]
fn reopen(
    handle: &File,
    again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let descriptor = handle.as_fd().as_raw_fd();
    match rustix::fs::open(format!("/proc/self/fd/{descriptor}"), READ, Mode::empty()) {
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

#[cfg(not(target_os = "linux"))]
fn reopen(
    handle: &File,
    _again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    rustix::io::dup(handle.as_fd())
}

fn failed(errno: Errno) -> Opened {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Opened::Absent,
        _ => Opened::Unreadable(std::io::Error::from(errno).to_string()),
    }
}
