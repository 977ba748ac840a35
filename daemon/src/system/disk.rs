//! What may be done in a directory, and how much room there is.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, fstatvfs, statvfs};

/// What is left on a file system.
pub(crate) struct Room {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Nothing can be written.
    pub(crate) read_only: bool,
    /// Not one more file can be made.
    pub(crate) no_files: bool,
}

/// Whether a directory may be listed and entered.
///
/// # Errors
/// The system's words.
pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::READ_OK | Access::EXEC_OK)?)
}

/// Whether something may be made in a directory.
///
/// # Errors
/// The system's words.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// `None` where the system does not say.
pub(crate) fn room(path: &Path) -> Option<Room> {
    let room = statvfs(path).ok()?;
    Some(Room {
        bytes: room.f_bavail.saturating_mul(room.f_frsize),
        read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        no_files: room.f_files > 0 && room.f_favail == 0,
    })
}

/// The bytes left on a file's file system; `None` where the system does not
/// say.
pub(crate) fn room_at(file: &File) -> Option<u64> {
    let room = fstatvfs(file).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}
