//! An unnamed file on systems without files in memory.

use std::fs::File;
use std::io;

/// Creates an unnamed file in the temporary directory.
///
/// # Errors
/// The system's error.
pub(crate) fn file() -> io::Result<File> {
    tempfile::tempfile()
}
