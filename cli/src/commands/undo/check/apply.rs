//! Writes what an undo would do into a copy of the workspace.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use touchmark_client::proto::native;
use touchmark_client::proto::undo::UndoneContent;

use super::copy::Scratch;

/// Removes and writes the files. The removals are first: a directory may have to
/// take the name of a file that goes.
///
/// # Errors
/// The name, and the system's error.
pub(super) fn apply(
    copy: &mut Scratch,
    results: &[UndoneContent],
) -> Result<(), (PathBuf, io::Error)> {
    for writes in [false, true] {
        let now = results.iter();
        for result in now.filter(|result| result.base64.is_some() == writes) {
            let name = PathBuf::from(native::name(result.name.as_bytes()).into_owned());
            put(copy, &name, result).map_err(|error| (name, error))?;
        }
    }
    Ok(())
}

fn put(copy: &mut Scratch, name: &Path, result: &UndoneContent) -> io::Result<()> {
    let path = copy.root.join(name);
    let mut above: Vec<&Path> = name.ancestors().skip(1).collect();
    above.retain(|directory| *directory != Path::new(""));
    for directory in above.into_iter().rev() {
        let directory = copy.root.join(directory);
        match directory.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            // A link would lead elsewhere.
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(_) if result.base64.is_none() => return Ok(()),
            Err(_) => fs::create_dir(directory)?,
        }
    }
    let before = path.symlink_metadata().ok();
    match &before {
        None => {}
        Some(found) if found.is_dir() => fs::remove_dir(&path)?,
        Some(_) => fs::remove_file(&path)?,
    }
    let Some(content) = &result.base64 else {
        return Ok(());
    };
    let content = STANDARD.decode(content).map_err(io::Error::other)?;
    if result.mode.is_some_and(|mode| mode.is_link()) {
        return copy.links.make(name, Path::new(&native::name(&content)));
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    file.write_all(&content)?;
    let kept = before.filter(fs::Metadata::is_file);
    let mode = match (result.mode, kept) {
        (Some(mode), _) => Permissions::from_mode(mode.permissions() & 0o777),
        (None, Some(kept)) => Permissions::from_mode(kept.permissions().mode() & 0o777),
        (None, None) => return Ok(()),
    };
    file.set_permissions(mode)
}
