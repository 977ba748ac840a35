//! The workspace of a systemd unit's instance. Units get the workspace's key as
//! their instance name, since systemd 252 loses the socket of an instance whose
//! name contains an escaped path. A file maps the key to the workspace.

use std::fs;
use std::path::PathBuf;

use touchmark_proto::{Places, native, places};

use super::base_directories;
use crate::Error;

/// Returns the workspace of an instance, as `touchmark service install` noted
/// it.
///
/// # Errors
/// [`Error::Instance`] if there is no such note, or it names another workspace.
pub fn workspace_of_instance(key: &str) -> Result<PathBuf, Error> {
    let note = base_directories()?.services_directory().join(key);
    let wrong = |reason: String| Error::Instance {
        key: key.to_owned(),
        reason,
    };
    if !Places::is_key(key) {
        return Err(wrong("not 16 hex digits".into()));
    }
    let bytes = fs::read(&note).map_err(|error| wrong(format!("{}: {error}", note.display())))?;
    let workspace = PathBuf::from(native::owned(bytes));
    // The clients of this key expect another workspace.
    if places::key(&workspace) != key {
        return Err(wrong(format!("{} names another workspace", note.display())));
    }
    Ok(workspace)
}
