//! Without Unix's modes: what is made is as private as the directory above.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Seek as _, Write as _};

/// As private as its directory.
pub(crate) fn private() -> OpenOptions {
    OpenOptions::new()
}

/// The same.
pub(crate) fn private_itself() -> OpenOptions {
    OpenOptions::new()
}

/// There are no FIFOs and terminals among files here.
pub(crate) fn patient() -> OpenOptions {
    OpenOptions::new()
}

/// As private as the one above.
pub(crate) fn private_directory() -> DirBuilder {
    DirBuilder::new()
}

/// Refuses: who may enter is not known here.
///
/// # Errors
/// Always.
pub(crate) fn check_private(_found: &Metadata) -> Result<(), String> {
    Err(
        "this system does not say in Unix's terms whose it is, and others' are not understood yet"
            .into(),
    )
}

/// Writes over the beginning of a file.
///
/// # Errors
/// The system's words.
pub(crate) fn write_over(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(bytes)
}
