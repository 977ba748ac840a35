//! Where the daemon of one workspace keeps its things. Daemon and clients
//! must agree on this, so it is computed here, from directories that each
//! side looks up in its own environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::native;

/// The variable that names the socket outright.
pub const SOCKET_VARIABLE: &str = "TOUCHMARK_SOCKET";

/// The directory below each base directory.
const NAME: &str = "touchmark";

/// The user's base directories (XDG), without `touchmark`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseDirectories {
    /// `$XDG_RUNTIME_DIR`, where it is set.
    pub runtime: Option<PathBuf>,
    /// `$XDG_STATE_HOME`, or its default.
    pub state: PathBuf,
    /// `$XDG_CONFIG_HOME`, or its default.
    pub config: PathBuf,
    /// `$XDG_CACHE_HOME`, or its default: in place of a runtime directory.
    pub cache: PathBuf,
}

impl BaseDirectories {
    /// The directory of all sockets and locks of this user.
    pub fn runtime_directory(&self) -> PathBuf {
        match &self.runtime {
            Some(runtime) => runtime.join(NAME),
            None => self.cache.join(NAME).join("run"),
        }
    }

    /// The directory of all workspaces' state.
    pub fn state_directory(&self) -> PathBuf {
        self.state.join(NAME)
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join(NAME).join("config.toml")
    }

    /// The directory that names the workspaces whose daemons systemd starts:
    /// one file for each, see [`Places::service`].
    pub fn services_directory(&self) -> PathBuf {
        self.config.join(NAME).join("services")
    }
}

/// Where the daemon of one workspace keeps its things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The workspace's name in all of the others.
    pub key: String,
    /// The directory of the socket and the lock; mode 0700.
    pub runtime: PathBuf,
    /// The socket; mode 0600.
    pub socket: PathBuf,
    /// Locked as long as the daemon runs. Holds its pid and, on the next
    /// line, the workspace's path.
    pub lock: PathBuf,
    /// The directory that fences are made in, the daemon's own.
    pub fence: PathBuf,
    /// The directory of the store and the log; mode 0700.
    pub state: PathBuf,
    /// The user's configuration.
    pub config: PathBuf,
    /// The workspace's configuration.
    pub workspace_config: PathBuf,
    /// There while systemd listens on the socket and starts the daemon. Holds
    /// the workspace's path, as it is, which a unit finds by the key.
    pub service: PathBuf,
}

impl Places {
    /// The places of a workspace, named by its canonical path. `socket` is
    /// what [`SOCKET_VARIABLE`] says, if anything.
    pub fn new(base: &BaseDirectories, workspace: &Path, socket: Option<&OsStr>) -> Self {
        let key = key(workspace);
        let runtime = base.runtime_directory();
        Self {
            socket: match socket {
                Some(socket) if !socket.is_empty() => PathBuf::from(socket),
                _ => runtime.join(format!("{key}.sock")),
            },
            lock: runtime.join(format!("{key}.lock")),
            fence: runtime.join(format!("{key}.fence")),
            state: base.state_directory().join(&key),
            config: base.config_file(),
            workspace_config: workspace.join(".touchmark.toml"),
            service: base.services_directory().join(&key),
            runtime,
            key,
        }
    }

    /// Whether that can be a [`key`].
    pub fn is_key(name: &str) -> bool {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        name.len() == 16 && name.bytes().all(digit)
    }
}

/// The first 16 hex digits of the SHA-256 of a canonical path's bytes.
pub fn key(workspace: &Path) -> String {
    let digest = Sha256::digest(native::bytes(workspace));
    hex::encode(digest.get(..8).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn base() -> BaseDirectories {
        BaseDirectories {
            runtime: Some("/run/user/7".into()),
            state: "/home/u/.local/state".into(),
            config: "/home/u/.config".into(),
            cache: "/home/u/.cache".into(),
        }
    }

    #[test]
    fn places_as_documented() {
        let places = Places::new(&base(), Path::new("/abc"), None);
        // printf /abc | sha256sum
        assert_eq!(places.key, "aaaea3613df9f409");
        assert!(Places::is_key(&places.key));
        for other in [
            "",
            "aaaea3613df9f40",
            "AAAEA3613DF9F409",
            "../../etc/passwd",
        ] {
            assert!(!Places::is_key(other), "{other}");
        }
        assert_eq!(
            places.socket,
            Path::new("/run/user/7/touchmark/aaaea3613df9f409.sock")
        );
        assert_eq!(
            places.state,
            Path::new("/home/u/.local/state/touchmark/aaaea3613df9f409")
        );
        assert_eq!(
            places.config,
            Path::new("/home/u/.config/touchmark/config.toml")
        );
        assert_eq!(places.workspace_config, Path::new("/abc/.touchmark.toml"));
        assert_eq!(
            places.service,
            Path::new("/home/u/.config/touchmark/services/aaaea3613df9f409")
        );
    }

    #[test]
    fn without_a_runtime_directory_the_cache_serves() {
        let base = BaseDirectories {
            runtime: None,
            ..base()
        };
        let places = Places::new(&base, Path::new("/abc"), None);
        assert_eq!(places.runtime, Path::new("/home/u/.cache/touchmark/run"));
    }

    #[test]
    fn the_variable_names_the_socket_outright() {
        let places = Places::new(&base(), Path::new("/abc"), Some(OsStr::new("/tmp/x.sock")));
        assert_eq!(places.socket, Path::new("/tmp/x.sock"));
        assert!(places.lock.starts_with("/run/user/7"));
    }
}
