//! The temporary file next to the target, and the attributes that it gets from
//! the old file (GUARD-2).

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{Gid, Mode, RawMode, Uid, XattrFlags};
use rustix::io::Errno;

use super::names::{PREFIX, SUFFIX};
use super::place::{NEW_FILE, PLAIN, Place};
use crate::system::process::Umask;

/// The largest attribute, in bytes, that is copied. No file system has larger
/// ones.
const LARGEST_ATTRIBUTE: usize = 64 << 10;

/// Returns a random name for a temporary file.
pub(super) fn new_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    // Two hashers with random keys from the system.
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{PREFIX}{:016x}{:016x}{SUFFIX}", random(), random())
}

/// Which permissions a file gets.
#[derive(Clone, Copy)]
pub(super) enum Like<'a> {
    /// The owner, the attributes and the permissions of the file that it
    /// replaces.
    Old(&'a File, &'a Metadata),
    /// The permissions that this mask leaves; the file is new.
    New(Umask),
    /// Exactly these permissions, if given, or those that the mask leaves; the
    /// file is new. It gets this owner, if one is given.
    Given(Option<u32>, Umask, Option<u32>),
}

/// The temporary file. Its name is removed when this is dropped.
pub(super) struct Temporary<'p> {
    place: &'p Place,
    name: Option<Vec<u8>>,
}

impl<'p> Temporary<'p> {
    /// Writes a file with all of `bytes`.
    pub(super) fn write(
        place: &'p Place,
        name: &str,
        bytes: &[u8],
        like: Like<'_>,
        durable: bool,
    ) -> Result<Self, Errno> {
        let mode = match like {
            // No other user may read it until its permissions are set.
            Like::Old(..) | Like::Given(Some(_), ..) => 0o600,
            Like::New(_) | Like::Given(..) => NEW_FILE,
        };
        let mut file = place.create(name.as_bytes(), mode)?;
        let temporary = Self {
            place,
            name: Some(name.as_bytes().to_vec()),
        };
        super::step("guard: a temporary file is there");
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        file.write_all(bytes).map_err(io)?;
        match like {
            Like::Old(old, metadata) => take_over(&file, old, metadata, place)?,
            Like::New(umask) => place.permit(&file, NEW_FILE, umask)?,
            Like::Given(mode, umask, owner) => {
                if let Some(owner) = owner {
                    rustix::fs::fchown(&file, Some(Uid::from_raw(owner)), None)?;
                }
                match mode {
                    Some(mode) => {
                        let mode = Mode::from_raw_mode((mode & PLAIN) as RawMode);
                        rustix::fs::fchmod(&file, mode)?;
                    }
                    None => place.permit(&file, NEW_FILE, umask)?,
                }
            }
        }
        if durable {
            file.sync_all().map_err(io)?;
        }
        Ok(temporary)
    }

    pub(super) fn name(&self) -> &[u8] {
        self.name.as_deref().unwrap_or_default()
    }

    /// Returns the name. It is not removed any more when this is dropped.
    pub(super) fn into_name(mut self) -> Vec<u8> {
        self.name.take().unwrap_or_default()
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.place.unlink(name);
        }
    }
}

/// Gives a new file the owner, attributes and mode of the old one. Returns `PERM`
/// if the file would lose its owner or its group and can be written in place,
/// which is then better.
fn take_over(file: &File, old: &File, metadata: &Metadata, place: &Place) -> Result<(), Errno> {
    let own = file.metadata().ok();
    let (user, group) = (Uid::from_raw(metadata.uid()), Gid::from_raw(metadata.gid()));
    let mode = metadata.mode() & PLAIN;
    if own
        .as_ref()
        .is_none_or(|own| (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()))
        && rustix::fs::fchown(file, Some(user), Some(group)).is_err()
    {
        // An ordinary user cannot give a file away, but to one of their own
        // groups.
        let group_kept = rustix::fs::fchown(file, None, Some(group)).is_ok();
        let owner_kept = own.is_some_and(|own| own.uid() == metadata.uid());
        if !(owner_kept && group_kept) && place.may_write() {
            return Err(Errno::PERM);
        }
    }
    copy_attributes(file, old);
    // Last, since a change of owner or of an access list changes the mode.
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode as RawMode))
}

/// Copies extended attributes, including access lists. The system sets those
/// that an ordinary user may not copy (`security.*`).
fn copy_attributes(file: &File, old: &File) {
    let mut names = vec![0; LARGEST_ATTRIBUTE];
    let Ok(length) = rustix::fs::flistxattr(old, names.as_mut_slice()) else {
        return;
    };
    names.truncate(length);
    let mut value = vec![0; LARGEST_ATTRIBUTE];
    for name in names.split(|byte| *byte == 0).filter(|n| !n.is_empty()) {
        let Ok(length) = rustix::fs::fgetxattr(old, name, value.as_mut_slice()) else {
            continue;
        };
        let value = value.get(..length).unwrap_or_default();
        if let Err(errno) = rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()) {
            tracing::debug!("{}: {errno}", String::from_utf8_lossy(name));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use touchmark_proto::RelPath;

    use super::super::is_temporary;
    use super::*;

    #[test]
    fn a_new_name_is_known_and_another_each_time() {
        let name = new_name();
        assert!(is_temporary(&RelPath::new(name.as_bytes()).unwrap()));
        assert_ne!(name, new_name());
    }
}
