//! Opening a path without leaving the workspace (SEC-2), and without opening
//! anything but regular files (LOSS-4).

#[cfg_attr(not(target_os = "linux"), path = "beneath/kernel/fallback.rs")]
mod kernel;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use touchmark_proto::RelPath;

pub(crate) use super::opened::Opened;
use crate::links::{End, resolve};
use crate::system::look::LOOK;

use kernel::{by_kernel, reopen};

/// The workspace's directory, open while some files are opened. Keep it only
/// briefly: while it is open, the system does not report its removal (LIFE-1).
pub(crate) struct Root<'a> {
    path: &'a Path,
    top: Result<OwnedFd, Errno>,
}

impl<'a> Root<'a> {
    pub(crate) fn open(path: &'a Path) -> Self {
        Self {
            path,
            top: rustix::fs::open(path, LOOK | OFlags::DIRECTORY, Mode::empty()),
        }
    }

    /// Opens a file of the workspace for reading.
    pub(crate) fn file(&self, path: &RelPath) -> Opened {
        let top = match &self.top {
            Ok(top) => top,
            Err(errno) => return failed(*errno),
        };
        match by_kernel(top, path, LOOK) {
            Ok(handle) => return read_handle(handle, None, |flags| by_kernel(top, path, flags)),
            // There is a symlink on the path, whose real name is needed; or the
            // kernel (or a sandbox) has no openat2.
            Err(Errno::XDEV | Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            Err(errno) => return failed(errno),
        }
        by_hand(top, self.path, path)
    }
}

/// Opens a handle on the directory of that relative name, or on `root` if the
/// name is empty. Returns `None` if that fails or a symlink is on the path.
pub(super) fn directory(root: &Path, name: &[u8]) -> Option<OwnedFd> {
    let top = rustix::fs::open(root, LOOK | OFlags::DIRECTORY, Mode::empty()).ok()?;
    if name.is_empty() {
        return Some(top);
    }
    let path = RelPath::new(name).ok()?;
    by_kernel(&top, &path, LOOK | OFlags::DIRECTORY).ok()
}

/// Resolves a path component by component: first to find the real name behind
/// links, then along the real names without following any link.
pub(super) fn by_hand(top: &OwnedFd, root: &Path, path: &RelPath) -> Opened {
    let resolved = resolve(root, path, |_| false);
    let end = match resolved.end {
        End::There(end, _) => end,
        End::Root => return Opened::NotAFile("directory"),
        End::Missing(_) => {
            return Opened::Absent {
                real: resolved.missing,
            };
        }
        End::Loop => return Opened::Absent { real: None },
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
    Opened::Absent { real: None }
}

/// Opens the object of a handle for reading, if it is a regular file. `again`
/// opens the same name once more.
fn read_handle(
    handle: OwnedFd,
    real: Option<RelPath>,
    again: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Opened {
    let handle = File::from(handle);
    let before = match handle.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Opened::Unreadable(error.to_string()),
    };
    let file_type = before.file_type();
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
            before: Box::new(before),
            real,
        },
        // A process has a lease, which this open is breaking.
        Err(Errno::AGAIN) => Opened::Changing,
        Err(errno) => Opened::Unreadable(std::io::Error::from(errno).to_string()),
    }
}

fn failed(errno: Errno) -> Opened {
    match errno {
        // A name that is too long for one call proves nothing about a file.
        Errno::NOENT | Errno::NOTDIR => Opened::Absent { real: None },
        _ => Opened::Unreadable(std::io::Error::from(errno).to_string()),
    }
}
