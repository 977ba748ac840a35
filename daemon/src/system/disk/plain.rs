//! As far as `std` tells.

use std::fs;
use std::io;
use std::path::Path;

/// What is left on a file system.
pub(crate) struct Room {
    /// Bytes.
    pub(crate) bytes: u64,
    /// Nothing can be written.
    pub(crate) read_only: bool,
    /// Not one more file can be made.
    pub(crate) no_files: bool,
}

/// Whether a directory may be listed.
///
/// # Errors
/// The system's words.
pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    fs::read_dir(path).map(drop)
}

/// Whether something may be made in a directory, as far as its own mark says.
///
/// # Errors
/// The system's words.
pub(crate) fn may_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Not told.
pub(crate) fn room(_path: &Path) -> Option<Room> {
    None
}
