//! Owners, modes, and which file is which.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    chown,
};
use std::path::Path;

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

/// A directory that it makes is nobody else's to enter.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Waits neither for the other end of a FIFO nor takes a terminal for its own.
pub(crate) fn patient() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

/// Whether a file can be run as a program by somebody.
pub(crate) fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Under how many names a file is known.
pub(crate) fn hard_links(file: &Metadata) -> u64 {
    file.nlink()
}

/// Two files swap their names at once.
///
/// # Errors
/// The system's words, also where the file system cannot.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Writes a file's content anew, from its beginning on.
///
/// # Errors
/// The system's words.
pub(crate) fn write_over(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

/// Whether two looks saw the same file.
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Gives a new file the owner of the one that it replaces.
///
/// # Errors
/// The system's words, if it would be somebody else's.
pub(crate) fn keep_owner(file: &Path, before: &Metadata) -> io::Result<()> {
    let owner = chown(file, Some(before.uid()), Some(before.gid()));
    if before.uid() == rustix::process::geteuid().as_raw() {
        // A group that this user is not in.
        return Ok(());
    }
    owner
}

/// What any program gives a file that it makes; `None` for what it has
/// already.
pub(crate) fn usual_permissions() -> Option<Permissions> {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    Some(Permissions::from_mode(0o666 & !(mask.as_raw_mode() as u32)))
}
