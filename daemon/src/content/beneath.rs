//! Opening a path without leaving the workspace (SEC-2) and without waking
//! what is not a regular file (LOSS-4).

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use touchmark_proto::RelPath;

pub(crate) use super::opened::Opened;
use crate::links::{End, relative, resolve};
use crate::system::look::LOOK;

/// Reading that never waits for a writer or a lease and never gains a
/// terminal, should the file have become something else at the last moment.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// Opens a file of the workspace at `root` for reading.
pub(crate) fn open(root: &Path, path: &RelPath) -> Opened {
    // Not held between reads: it would keep the news of the root's removal
    // from coming (LIFE-1).
    let top = match rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty()) {
        Ok(top) => top,
        Err(errno) => return failed(errno),
    };
    #[cfg(target_os = "linux")]
    match by_kernel(&top, path) {
        Ok(handle) => {
            let real = real_name(&handle, root, path);
            return read_handle(handle, real);
        }
        // Out by an absolute link or `..`, which may lead in again; too many
        // links; or a kernel (or a sandbox) without openat2.
        Err(Errno::XDEV | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
        Err(errno) => return failed(errno),
    }
    by_hand(&top, root, path)
}

/// Resolution by the kernel, which refuses to leave `top` at any step.
#[cfg(target_os = "linux")]
fn by_kernel(top: &OwnedFd, path: &RelPath) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let mut result = Err(Errno::AGAIN);
    // EAGAIN: something was renamed meanwhile, so `..` could not be trusted.
    for _ in 0..32 {
        result = rustix::fs::openat2(
            top,
            path.as_bytes(),
            LOOK,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

/// Where the handle's file lies, relative to the root, if not at `path`.
#[cfg(target_os = "linux")]
fn real_name(handle: &OwnedFd, root: &Path, path: &RelPath) -> Option<RelPath> {
    let name = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
    let real = relative(root, &name)?;
    // So the kernel marks a name that has gone since.
    let gone = real.as_bytes().ends_with(b" (deleted)");
    (real != *path && !gone).then_some(real)
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
    let mut handle: Option<OwnedFd> = None;
    let mut names = end.as_bytes().split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let flags = match names.peek() {
            Some(_) => LOOK | OFlags::NOFOLLOW | OFlags::DIRECTORY,
            None => LOOK | OFlags::NOFOLLOW,
        };
        let above = handle.as_ref().unwrap_or(top);
        match rustix::fs::openat(above, name, flags, Mode::empty()) {
            Ok(next) => handle = Some(next),
            Err(Errno::LOOP | Errno::NOTDIR) => return Opened::Changing,
            Err(errno) => return failed(errno),
        }
    }
    match handle {
        Some(handle) => read_handle(handle, Some(end).filter(|end| end != path)),
        None => Opened::Absent,
    }
}

/// Opens what a handle stands for, if it is a regular file.
fn read_handle(handle: OwnedFd, real: Option<RelPath>) -> Opened {
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
    match reopen(&handle) {
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
fn reopen(handle: &File) -> Result<OwnedFd, Errno> {
    let descriptor = handle.as_fd().as_raw_fd();
    rustix::fs::open(format!("/proc/self/fd/{descriptor}"), READ, Mode::empty())
}

#[cfg(not(target_os = "linux"))]
fn reopen(handle: &File) -> Result<OwnedFd, Errno> {
    rustix::io::dup(handle.as_fd())
}

fn failed(errno: Errno) -> Opened {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Opened::Absent,
        _ => Opened::Unreadable(std::io::Error::from(errno).to_string()),
    }
}
