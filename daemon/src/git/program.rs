//! Which program is git.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::files::{common_directory, own_directory};

/// Where programs are if `PATH` is not set.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns git's path, and a `PATH` for it. Of the directories in `PATH`, those
/// that are relative or in a work tree of the repository do not count: what they
/// contain comes with the repository. `common` is the directory that its work
/// trees share.
///
/// # Errors
/// `NotFound` if there is no git.
pub(super) fn find(top: &Path, common: &Path) -> io::Result<(PathBuf, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL.into());
    let directories = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .filter_map(|directory| directory.canonicalize().ok())
        .filter(|directory| !directory.starts_with(top));
    for directory in directories {
        let git = directory.join("git");
        let found = git.metadata();
        let runs = |found: Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
        if found.is_ok_and(runs) && !is_in_work_tree(&directory, common) {
            return Ok((git, directory.into()));
        }
    }
    let why = "there is no git on PATH outside of the work tree";
    Err(io::Error::new(io::ErrorKind::NotFound, why))
}

/// Returns whether a directory is in a work tree of the repository.
fn is_in_work_tree(directory: &Path, common: &Path) -> bool {
    let is_same = |own: PathBuf| {
        let found = common_directory(&own).canonicalize();
        found.is_ok_and(|found| found == common)
    };
    let mut above = directory.ancestors();
    above.any(|top| own_directory(top).is_some_and(is_same))
}
