//! The same where there are no files in memory.

use std::fs::File;
use std::io;

/// One in the temporary directory, whose name is gone.
///
/// # Errors
/// The system's words.
pub(crate) fn file() -> io::Result<File> {
    tempfile::tempfile()
}
