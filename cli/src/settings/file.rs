//! One settings file: read, and written as a whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::output::{Failure, Outcome};
use crate::system::files::{keep_owner, usual_permissions};

/// What some editors put before a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Links that are followed before they count as a circle.
const MAX_LINKS: usize = 40;

/// The file's bytes; `None` where there is none.
///
/// # Errors
/// What the system says.
pub(super) fn read(path: &Path) -> Outcome<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::No(format!(
            "{}: {error}",
            crate::context::directory(path)
        ))),
    }
}

/// Puts a file with these bytes in the place of what is there: who reads
/// meanwhile sees the one or the other. Links stay links, the mode stays.
///
/// # Errors
/// What the system says.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let target = target(path)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let doing = || format!("write {}", target.display());
    fs::create_dir_all(directory).with_context(doing)?;
    let mut file = tempfile::Builder::new()
        .prefix(".touchmark-")
        .tempfile_in(directory)
        .with_context(doing)?;
    file.write_all(bytes).with_context(doing)?;
    let permissions = match fs::metadata(&target) {
        Ok(before) => {
            keep_owner(file.path(), &before).with_context(doing)?;
            Some(before.permissions())
        }
        // As any program makes it.
        Err(_) => usual_permissions(),
    };
    if let Some(permissions) = permissions {
        file.as_file()
            .set_permissions(permissions)
            .with_context(doing)?;
    }
    file.as_file().sync_all().with_context(doing)?;
    file.persist(&target)
        .map_err(|error| error.error)
        .with_context(doing)?;
    Ok(())
}

/// Where a name leads to, be there something or not.
fn target(path: &Path) -> Outcome<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&target) else {
            return Ok(target);
        };
        target = target.parent().unwrap_or(Path::new("/")).join(link);
    }
    Err(Failure::No(format!(
        "{}: links in a circle",
        path.display()
    )))
}

/// Removes a file.
///
/// # Errors
/// What the system says.
pub(super) fn remove(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::Other(
            anyhow::Error::from(error).context(format!("remove {}", path.display())),
        )),
        _ => Ok(()),
    }
}

/// The directories that writing the file makes, the innermost first.
pub(super) fn missing_directories(path: &Path) -> Vec<PathBuf> {
    path.ancestors()
        .skip(1)
        .take_while(|directory| fs::symlink_metadata(directory).is_err())
        .map(Path::to_owned)
        .collect()
}

/// Removes those of the directories that nobody else uses.
pub(super) fn remove_empty<'a>(directories: impl Iterator<Item = &'a PathBuf>) {
    for directory in directories {
        // One that is not empty is somebody's by now.
        let _ = fs::remove_dir(directory);
    }
}
