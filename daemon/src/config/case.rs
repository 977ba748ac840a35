//! Finds out how a file system compares names (SEEN-6), without writing.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use touchmark_proto::native;

use crate::system::stat::MetadataExt as _;

/// The maximum number of names that are tried.
const TRIES: usize = 64;

/// Returns whether names in this directory that differ only in case are one
/// file. If no entry shows it, the directory's own name in its parent is tried;
/// if that does not show it either, names count as case-sensitive.
pub fn probe_case_insensitive(root: &Path) -> bool {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .take(TRIES)
        .find_map(|entry| same_under_other_case(root, &entry.file_name()))
        .or_else(|| same_under_other_case(root.parent()?, root.file_name()?))
        .unwrap_or(false)
}

/// Returns whether a name with its case swapped is the same file; `None` if the
/// name has no case or cannot be examined.
fn same_under_other_case(directory: &Path, name: &OsStr) -> Option<bool> {
    let other = swap_case(name)?;
    let here = fs::symlink_metadata(directory.join(name)).ok()?;
    match fs::symlink_metadata(directory.join(&other)) {
        // Two hard links to one file would look the same, so only a directory
        // or a file with one link proves it.
        Ok(there) if here.is_dir() || here.nlink() == 1 => {
            Some((here.dev(), here.ino()) == (there.dev(), there.ino()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        _ => None,
    }
}

fn swap_case(name: &OsStr) -> Option<OsString> {
    let mut swapped = native::bytes(name).into_owned();
    for byte in &mut swapped {
        if byte.is_ascii_lowercase() {
            byte.make_ascii_uppercase();
        } else {
            byte.make_ascii_lowercase();
        }
    }
    (swapped != *native::bytes(name)).then(|| native::owned(swapped))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_other_case_is_another_name_here() {
        // All file systems on which the tests run are case-sensitive.
        let directory = tempfile::tempdir().unwrap();
        assert!(!probe_case_insensitive(directory.path()));
        fs::write(directory.path().join("readme"), "").unwrap();
        fs::write(directory.path().join("README"), "").unwrap();
        assert!(!probe_case_insensitive(directory.path()));
    }

    #[test]
    fn hard_links_and_names_without_case_tell_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::write(path.join("a"), "").unwrap();
        fs::hard_link(path.join("a"), path.join("A")).unwrap();
        assert_eq!(same_under_other_case(path, OsStr::new("a")), None);
        assert_eq!(same_under_other_case(path, OsStr::new("123")), None);
    }
}
