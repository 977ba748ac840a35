//! The daemon's directories, its lock, which ensures that only one daemon runs,
//! and the service manager.

mod directory;
mod forget;
mod instance;
mod lock;
mod own;
mod stored;
#[cfg_attr(not(target_os = "linux"), path = "life/systemd/unsupported.rs")]
pub mod systemd;
mod vanished;

use std::path::{Path, PathBuf};

use touchmark_proto::Places;
use touchmark_proto::places::{BaseDirectories, SOCKET_VARIABLE};

pub use directory::{check_private, private_directory, usable_directory};
pub use forget::{forget, kept};
pub use instance::workspace_of_instance;
pub use lock::Lock;
pub(crate) use lock::named_in;
pub(crate) use own::patterns as own_files;
pub use stored::{Stored, stored};
pub use vanished::{Sweep, Vanished, forget_vanished};

use crate::Error;

/// The extension of a state directory while it is being removed.
const GONE: &str = "gone";

/// Returns the number of descriptors that a daemon with this number of
/// connections may need.
pub fn descriptors(connections: u32) -> u64 {
    /// Descriptors for the store, the watcher, and reads in progress.
    const OTHERS: u64 = 512;
    u64::from(connections) + OTHERS
}

/// Returns the canonical path of a workspace.
///
/// # Errors
/// [`Error::Workspace`] if it is not a directory.
pub fn canonical_workspace(path: &Path) -> Result<PathBuf, Error> {
    let wrong = |cause| Error::Workspace {
        path: path.to_owned(),
        cause,
    };
    let canonical = path.canonicalize().map_err(wrong)?;
    if canonical.is_dir() {
        Ok(canonical)
    } else {
        Err(wrong(std::io::ErrorKind::NotADirectory.into()))
    }
}

/// Returns the places of a canonical workspace in this process's environment.
///
/// # Errors
/// If the environment names no home directory.
pub fn places(workspace: &Path) -> Result<Places, Error> {
    Ok(Places::new(
        &base_directories()?,
        workspace,
        std::env::var_os(SOCKET_VARIABLE).as_deref(),
    ))
}

fn base_directories() -> Result<BaseDirectories, Error> {
    let directories = directories::BaseDirs::new().ok_or(Error::Part {
        part: "environment",
        cause: "no home directory: set HOME".into(),
    })?;
    Ok(BaseDirectories {
        runtime: directories.runtime_dir().map(Path::to_owned),
        state: directories
            .state_dir()
            .unwrap_or_else(|| directories.data_local_dir())
            .to_owned(),
        config: directories.config_dir().to_owned(),
        cache: directories.cache_dir().to_owned(),
    })
}
