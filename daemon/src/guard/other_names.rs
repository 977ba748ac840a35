//! SEC-10 by another name: a file with several names is written in place, so a
//! write by any of its names changes the protected file.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use touchmark_proto::RelPath;

use crate::links::relative;
use crate::system::look::file_system;

/// The most directory entries looked at for one write: some 10 ms.
const MOST: usize = 20_000;

/// Returns whether a file has another name in the workspace that
/// `is_protected`, as far as [`MOST`] entries show. Directories in which
/// everything is protected are looked at first, without git's objects; then all
/// others, from the top. Other file systems are not touched, since a file
/// cannot have names on two.
pub(super) fn is_protected_by_another(
    root: &Path,
    file: &Metadata,
    is_protected: impl Fn(&RelPath) -> bool,
) -> bool {
    let mut names = file.nlink();
    let mut left = MOST;
    let mut directories = VecDeque::from([root.join(".git"), root.to_path_buf()]);
    while let Some(directory) = directories.pop_front() {
        if file_system(&directory).is_none_or(|found| found.device != file.dev()) {
            continue;
        }
        for entry in std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten()
        {
            if left == 0 || names == 0 {
                return false;
            }
            left -= 1;
            let place = entry.path();
            let (Ok(kind), Some(path)) = (entry.file_type(), relative(root, &place)) else {
                continue;
            };
            if kind.is_dir() {
                enter(&mut directories, place, &path, &is_protected);
            } else if kind.is_file() && entry.ino() == file.ino() {
                if is_protected(&path) {
                    return true;
                }
                names -= 1;
            }
        }
    }
    false
}

fn enter(
    directories: &mut VecDeque<PathBuf>,
    place: PathBuf,
    path: &RelPath,
    is_protected: impl Fn(&RelPath) -> bool,
) {
    let all = path.join(b"x").is_ok_and(|inner| is_protected(&inner));
    match all {
        true if path.as_bytes() == b".git" || path.file_name() == b"objects" => {}
        true => directories.push_front(place),
        false => directories.push_back(place),
    }
}
