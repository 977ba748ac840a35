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
    /// The directory of all sockets of this user.
    pub fn runtime_directory(&self) -> PathBuf {
        match &self.runtime {
            Some(runtime) => runtime.join(NAME),
            None => self.cache.join(NAME).join("run"),
        }
    }

    /// The directory of all workspaces' state and locks.
    pub fn state_directory(&self) -> PathBuf {
        self.state.join(NAME)
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join(NAME).join("config.toml")
    }

    /// The list of directories that the user trusts though they are somebody
    /// else's: see [`trust`](crate::trust).
    pub fn trusted_file(&self) -> PathBuf {
        self.config.join(NAME).join("trusted")
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
    /// The directory of the socket; mode 0700.
    pub runtime: PathBuf,
    /// The socket that a daemon of this environment listens on; mode 0600.
    /// One of another environment may listen elsewhere: see [`Holder`].
    pub socket: PathBuf,
    /// Locked as long as the daemon runs, and beside the state, since it is
    /// the state that must have one daemon (SEC-1). Holds a [`Holder`].
    pub lock: PathBuf,
    /// Locked in its place where the state directory cannot be written to
    /// (LOSS-3).
    pub spare_lock: PathBuf,
    /// The directory that fences are made in, the daemon's own.
    pub fence: PathBuf,
    /// The directory of the store and the log; mode 0700.
    pub state: PathBuf,
    /// The user's configuration.
    pub config: PathBuf,
    /// The workspace's configuration.
    pub workspace_config: PathBuf,
    /// The user's list of trusted directories.
    pub trusted: PathBuf,
    /// There while systemd listens on the socket and starts the daemon. Holds
    /// the workspace's path, as it is, which a unit finds by the key.
    pub service: PathBuf,
}

impl Places {
    /// The places of a workspace, named by its canonical path. `socket` is
    /// what [`SOCKET_VARIABLE`] says, if anything.
    pub fn new(base: &BaseDirectories, workspace: &Path, socket: Option<&OsStr>) -> Self {
        let mut places = Self::of_key(base, &key(workspace));
        places.workspace_config = workspace.join(".touchmark.toml");
        if let Some(socket) = socket.filter(|socket| !socket.is_empty()) {
            places.socket = PathBuf::from(socket);
        }
        places
    }

    /// The same of a workspace of which only the [`key`] is known: without
    /// the workspace's configuration.
    pub fn of_key(base: &BaseDirectories, key: &str) -> Self {
        let runtime = base.runtime_directory();
        Self {
            socket: runtime.join(format!("{key}.sock")),
            lock: base.state_directory().join(format!("{key}.lock")),
            spare_lock: runtime.join(format!("{key}.lock")),
            fence: runtime.join(format!("{key}.fence")),
            state: base.state_directory().join(key),
            config: base.config_file(),
            workspace_config: PathBuf::new(),
            trusted: base.trusted_file(),
            service: base.services_directory().join(key),
            runtime,
            key: key.to_owned(),
        }
    }

    /// Where the socket is unless [`SOCKET_VARIABLE`] names another.
    pub fn usual_socket(&self) -> PathBuf {
        self.runtime.join(format!("{}.sock", self.key))
    }

    /// Whether that can be a [`key`].
    pub fn is_key(name: &str) -> bool {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        name.len() == 16 && name.bytes().all(digit)
    }
}

/// What a lock says of the daemon that holds it: three lines, each ended by a
/// line feed. The last one may hold further line feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The daemon's process.
    pub pid: u32,
    /// Where it listens. An empty line, so `None`, if that path holds a line
    /// feed.
    pub socket: Option<PathBuf>,
    /// The workspace's canonical path.
    pub workspace: PathBuf,
}

impl Holder {
    /// The lock's content.
    pub fn text(&self) -> Vec<u8> {
        let socket = self.socket.as_deref().map(native::bytes);
        let socket = socket.filter(|socket| !socket.contains(&b'\n'));
        let mut text = format!("{}\n", self.pid).into_bytes();
        text.extend_from_slice(&socket.unwrap_or_default());
        text.push(b'\n');
        text.extend_from_slice(&native::bytes(&self.workspace));
        text.push(b'\n');
        text
    }

    /// Reads a lock's content; `None` if it is not whole, as when it was only
    /// just taken.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = text.strip_suffix(b"\n")?.splitn(3, |&byte| byte == b'\n');
        let pid = std::str::from_utf8(lines.next()?).ok()?.parse().ok()?;
        let mut path = || Some(PathBuf::from(&native::name(lines.next()?)));
        let socket = path()?;
        Some(Self {
            pid,
            socket: Some(socket).filter(|socket| socket.is_absolute()),
            workspace: path()?,
        })
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
        assert!(places.lock.starts_with("/home/u/.local/state"));
    }

    #[test]
    fn the_lock_does_not_depend_on_the_runtime_directory() {
        let elsewhere = BaseDirectories {
            runtime: None,
            ..base()
        };
        let [one, other] =
            [base(), elsewhere].map(|base| Places::new(&base, Path::new("/abc"), None));
        assert_ne!(one.socket, other.socket);
        assert_eq!(one.lock, other.lock);
        assert_eq!(
            one.lock,
            Path::new("/home/u/.local/state/touchmark/aaaea3613df9f409.lock")
        );
    }

    #[test]
    fn a_holder_reads_as_it_was_written() {
        let holder = Holder {
            pid: 7,
            socket: Some("/run/a.sock".into()),
            workspace: "/a\nb".into(),
        };
        let text = holder.text();
        assert_eq!(text, b"7\n/run/a.sock\n/a\nb\n");
        assert_eq!(Holder::parse(&text), Some(holder.clone()));
        for length in 0..text.len() {
            // A shorter workspace would be another one.
            let part = Holder::parse(&text[..length]);
            assert!(part.is_none_or(|part| part.workspace == Path::new("/a")));
        }
        let odd = Holder {
            socket: Some("/a\nb".into()),
            ..holder
        };
        assert_eq!(Holder::parse(&odd.text()).unwrap().socket, None);
    }
}
