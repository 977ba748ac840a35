//! The names in one directory, and their stats.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;
use touchmark_proto::RelPath;
use touchmark_proto::path::PathError;

use super::index::{Directory, Entry, Kind, Stat};
use crate::tools::GIT;

/// A name in a directory, and the type of its entry.
pub(super) type Name = (Box<[u8]>, Kind);

/// Returns the path of a name in a directory.
pub(super) fn join(above: &[u8], name: &[u8]) -> Result<RelPath, PathError> {
    match above {
        [] => RelPath::new(name),
        above => RelPath::new(&[above, b"/", name].concat()),
    }
}

/// Returns the names in a directory as recorded, without reading it.
pub(super) fn names_known(directory: &Directory) -> Vec<Name> {
    let entries = directory.entries.iter();
    entries
        .map(|(name, entry)| {
            let kind = match entry {
                Entry::File(file) => file.kind(),
                Entry::Directory { .. } => Kind::Directory,
                Entry::Passed(kind) => *kind,
            };
            (name.clone(), kind)
        })
        .collect()
}

/// Reads the names in a directory, sorted.
pub(super) fn list(handle: &OwnedFd) -> Result<Vec<Name>, Errno> {
    let mut names: Vec<Name> = Vec::new();
    for found in Dir::read_from(handle)? {
        let found = found?;
        let name = found.file_name().to_bytes();
        if matches!(name, b"." | b"..") || name == GIT.as_bytes() {
            continue;
        }
        let file_type = match found.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW);
                found.map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                })
            }
            known => known,
        };
        let kind = match file_type {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            FileType::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        names.push((Box::from(name), kind));
    }
    names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

/// Returns the stat of a regular file or a symlink; `None` for anything else.
pub(super) fn stat_of(handle: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, Errno> {
    let found = rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let file_type = FileType::from_raw_mode(found.st_mode);
    if !matches!(file_type, FileType::RegularFile | FileType::Symlink) {
        return Ok(None);
    }
    Ok(Some(Stat::of(&found)))
}
