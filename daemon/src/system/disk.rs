//! Permissions of directories, and free space.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, fstatvfs, statvfs};

/// The free space on a file system.
pub(crate) struct Room {
    /// The number of free bytes.
    pub(crate) bytes: u64,
    /// Whether the file system is mounted read-only.
    pub(crate) read_only: bool,
    /// Whether no further file can be created.
    pub(crate) no_files: bool,
}

/// Checks that a directory may be listed and entered.
///
/// # Errors
/// The system's error.
pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::READ_OK | Access::EXEC_OK)?)
}

/// Checks that entries may be created in a directory.
///
/// # Errors
/// The system's error.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Returns the free space at a path; `None` if the system does not report it.
pub(crate) fn room(path: &Path) -> Option<Room> {
    let room = statvfs(path).ok()?;
    Some(Room {
        bytes: room.f_bavail.saturating_mul(room.f_frsize),
        read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        no_files: room.f_files > 0 && room.f_favail == 0,
    })
}

/// Returns the number of free bytes on a file's file system; `None` if the
/// system does not report it.
pub(crate) fn room_at(file: &File) -> Option<u64> {
    let room = fstatvfs(file).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}
