//! The workspaces of which something is stored (FLEET-1).

use std::fs;
use std::path::{Path, PathBuf};

use touchmark_proto::Places;

use crate::store;

/// A workspace of which something is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The key of the workspace.
    pub key: String,
    /// The path of the workspace; `None` if its store does not say.
    pub workspace: Option<PathBuf>,
    /// The size in bytes of the files in its state directory, without the
    /// directories in it.
    pub bytes: u64,
}

/// Returns the workspaces whose state is in the directory of all states,
/// without those whose key is in `except`: daemons use them, and report it
/// themselves.
pub fn stored(directory: &Path, except: impl Fn(&str) -> bool) -> Vec<Stored> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let keys = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_state = Places::is_key(&name) && entry.file_type().ok()?.is_dir();
        (is_state && !except(&name)).then_some(name)
    });
    keys.map(|key| {
        let state = directory.join(&key);
        Stored {
            workspace: store::workspace(&state).ok().flatten(),
            bytes: size(&state),
            key,
        }
    })
    .collect()
}

fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| entry.metadata().ok());
    let files = files.filter(|found| found.is_file());
    files.map(|found| found.len()).sum()
}
