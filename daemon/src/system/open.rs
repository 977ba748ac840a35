//! Options for opening and creating files: private to this user, and without
//! blocking.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use touchmark_proto::trust::{Me, Trust};

/// Returns options with which a new file gets mode 0600.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Writes a file that only its user can read. With `durable`, the bytes are on
/// the disk when this returns.
///
/// # Errors
/// The system's error.
pub(crate) fn write_private(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let mut file = private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(bytes)?;
    match durable {
        true => file.sync_data(),
        false => Ok(()),
    }
}

/// Replaces a file through a second one next to it, whose extension is `part`.
/// A reader finds either the old bytes or the new ones.
///
/// # Errors
/// The system's error. The old file stays then.
pub(crate) fn replace_private(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let part = path.with_extension("part");
    write_private(&part, bytes, durable)?;
    fs::rename(&part, path)
}

/// Returns options with which a new file gets mode 0600 and a symlink is not
/// followed.
pub(crate) fn private_itself() -> OpenOptions {
    let mut options = private();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Returns options with which opening a FIFO does not block and a terminal does
/// not become the controlling one.
pub(crate) fn patient() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    options
}

/// Opens a regular file that is not a link, without waiting for a FIFO's other
/// end.
///
/// # Errors
/// The system's error, or there is something else with this name.
pub(crate) fn regular(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.custom_flags(flags.bits().cast_signed());
    let file = options.read(true).open(path)?;
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok((file, found)),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Reads a regular file of at most `most` bytes that is not a link.
///
/// # Errors
/// Those of [`regular`], and `FileTooLarge`.
pub(crate) fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, found) = regular(path)?;
    if found.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns a builder of directories with mode 0700.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Checks that a file or directory belongs to this user and is not accessible to
/// others.
///
/// # Errors
/// The reason why it is not, in words for people.
pub(crate) fn check_private(found: &Metadata) -> Result<(), String> {
    check_owner(found)?;
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("open to others (mode {mode:03o})"));
    }
    Ok(())
}

/// Returns the owner of a file, if that is not this user.
pub(crate) fn other_owner(owner: u32) -> Option<u32> {
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// Checks that a file or directory belongs to this user.
///
/// # Errors
/// The reason why it does not, in words for people.
pub(crate) fn check_owner(found: &Metadata) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if found.uid() == me {
        return Ok(());
    }
    Err(format!("belongs to user {}, not to {me}", found.uid()))
}

/// Returns the rule that says whose files are trusted: this user's, root's, and
/// those in the directories of the user's list (SEC-6).
pub(crate) fn trust(list: &Path) -> Trust {
    Trust {
        me: Me::new(rustix::process::geteuid().as_raw()),
        list: list.to_owned(),
    }
}

/// Overwrites the beginning of a file.
///
/// # Errors
/// The system's error.
pub(crate) fn write_over(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, 0)
}
