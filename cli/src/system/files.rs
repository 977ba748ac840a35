//! Owners, modes, and identities of files.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    chown,
};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

/// Returns a builder for directories that only their owner can enter.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Returns options that open a file without blocking on a FIFO, and without
/// making a terminal the controlling one.
pub(crate) fn patient() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

/// Returns whether a file can be run as a program by any user.
pub(crate) fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Returns the first file with this name in the directories of `PATH` for which
/// `is` returns true; `None` if there is none.
pub(crate) fn in_path(name: &str, is: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
    files.find(|file| is(file))
}

/// Returns the number of a file's hard links.
pub(crate) fn hard_links(file: &Metadata) -> u64 {
    file.nlink()
}

/// Exchanges the names of two files in one step.
///
/// # Errors
/// The system's error, also if the file system does not support it.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Overwrites a file's whole content.
///
/// # Errors
/// The system's error.
pub(crate) fn write_over(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)
}

/// Returns whether both are metadata of the same file.
pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Gives a new file the owner of the file that it replaces.
///
/// # Errors
/// The system's error, if the file would belong to another user.
pub(crate) fn keep_owner(file: &Path, before: &Metadata) -> io::Result<()> {
    let owner = chown(file, Some(before.uid()), Some(before.gid()));
    if before.uid() == rustix::process::geteuid().as_raw() {
        // Only the group cannot be set: this user is not in it.
        return Ok(());
    }
    owner
}

/// Returns the permissions that a new file gets if a program asks for `mode`.
pub(crate) fn usual_permissions(mode: u32) -> Permissions {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    Permissions::from_mode(mode & !(mask.as_raw_mode() as u32))
}
