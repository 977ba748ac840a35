//! Opening and making files: for this user alone, and without waiting.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use touchmark_proto::trust::{Me, Trust};

/// A file that it makes is nobody else's to read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The same, and a link in its place is not followed.
pub(crate) fn private_itself() -> OpenOptions {
    let mut options = private();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Neither waits for the other end of a FIFO nor takes a terminal for its own.
pub(crate) fn patient() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

/// A directory that it makes is nobody else's to enter.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Whether something is this user's and closed to all others.
///
/// # Errors
/// Why it is not, in words.
pub(crate) fn check_private(found: &Metadata) -> Result<(), String> {
    check_owner(found)?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("open to others (mode {mode:03o})"));
    }
    Ok(())
}

/// Whether something is this user's.
///
/// # Errors
/// Why it is not, in words.
pub(crate) fn check_owner(found: &Metadata) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if found.uid() == me {
        return Ok(());
    }
    Err(format!("belongs to user {}, not to {me}", found.uid()))
}

/// Whose files are taken over, but for what the user's list names (SEC-6).
pub(crate) fn trust(list: &Path) -> Trust {
    Trust {
        me: Me::new(rustix::process::geteuid().as_raw()),
        list: list.to_owned(),
    }
}

/// Writes over the beginning of a file.
///
/// # Errors
/// The system's words.
pub(crate) fn write_over(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)
}
