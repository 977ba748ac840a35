//! An unnamed file for the output of a daemon that has not opened its log yet.
//! A pipe would break when this process exits.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};

/// Creates an unnamed file in memory.
///
/// # Errors
/// The system's error.
pub(crate) fn file() -> io::Result<File> {
    Ok(memfd_create("touchmark-start", MemfdFlags::CLOEXEC)?.into())
}
