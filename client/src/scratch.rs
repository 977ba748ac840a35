//! A file without a name, for what a program says before it has a log: a pipe
//! would break when this process ends.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};

/// One in memory.
///
/// # Errors
/// The system's words.
pub(crate) fn file() -> io::Result<File> {
    Ok(memfd_create("touchmark-start", MemfdFlags::CLOEXEC)?.into())
}
