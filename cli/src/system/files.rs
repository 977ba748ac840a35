//! Owners, modes, and which file is which.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

/// A directory that it makes is nobody else's to enter.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
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
