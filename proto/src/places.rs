//! The places where the daemon of one workspace keeps its files.
//!
//! Daemon and clients must agree on them, so they are computed here, from
//! directories that each side looks up in its own environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::native;

/// The environment variable that names the socket directly.
pub const SOCKET_VARIABLE: &str = "TOUCHMARK_SOCKET";

/// The name of touchmark's directory below each base directory.
const NAME: &str = "touchmark";

/// The user's base directories (XDG), without `touchmark`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseDirectories {
    /// `$XDG_RUNTIME_DIR`; `None` if it is not set.
    pub runtime: Option<PathBuf>,
    /// `$XDG_STATE_HOME`, or its default.
    pub state: PathBuf,
    /// `$XDG_CONFIG_HOME`, or its default.
    pub config: PathBuf,
    /// `$XDG_CACHE_HOME`, or its default. It replaces a missing runtime
    /// directory.
    pub cache: PathBuf,
}

/// The variable in which a witnessed command and its children find the ring of
/// their witness (ATTR-3).
pub const WITNESS_VARIABLE: &str = "TOUCHMARK_WITNESS";

impl BaseDirectories {
    /// Returns the directory of all sockets of this user.
    pub fn runtime_directory(&self) -> PathBuf {
        match &self.runtime {
            Some(runtime) => runtime.join(NAME),
            None => self.cache.join(NAME).join("run"),
        }
    }

    /// Returns the directory of the state and locks of all workspaces.
    pub fn state_directory(&self) -> PathBuf {
        self.state.join(NAME)
    }

    /// Returns the path of the user's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.config.join(NAME).join("config.toml")
    }

    /// Returns the path of the list of directories that the user trusts
    /// although they belong to other users: see [`trust`](crate::trust).
    pub fn trusted_file(&self) -> PathBuf {
        self.config.join(NAME).join("trusted")
    }

    /// Returns the path of the file with the pauses that the user has set.
    pub fn pauses_file(&self) -> PathBuf {
        self.state_directory().join("pauses")
    }

    /// Returns the directory that names the workspaces whose daemons systemd
    /// starts: one file for each, see [`Places::service`].
    pub fn services_directory(&self) -> PathBuf {
        self.config.join(NAME).join("services")
    }
}

/// The places where the daemon of one workspace keeps its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The workspace's [`key`], which is part of the names of its files.
    pub key: String,
    /// The directory of the socket; its mode is 0700.
    pub runtime: PathBuf,
    /// The socket that a daemon of this environment listens on; its mode is
    /// 0600. A daemon of another environment may listen on another socket: see
    /// [`Holder`].
    pub socket: PathBuf,
    /// The lock file, locked while the daemon runs. It contains a [`Holder`].
    /// It is next to the state, since each state must have only one daemon
    /// (SEC-1).
    pub lock: PathBuf,
    /// The lock file that is used if the state directory is not writable
    /// (LOSS-3).
    pub spare_lock: PathBuf,
    /// The daemon's private directory for fences.
    pub fence: PathBuf,
    /// The directory of the store and the log; its mode is 0700.
    pub state: PathBuf,
    /// The user's configuration file.
    pub config: PathBuf,
    /// The workspace's configuration file; empty if only the key is known.
    pub workspace_config: PathBuf,
    /// The user's list of trusted directories.
    pub trusted: PathBuf,
    /// The pauses that the user has set: see [`Pauses`](crate::off::Pauses).
    pub pauses: PathBuf,
    /// The runs that `TOUCHMARK_BYPASS` lets pass, and what an agent was refused
    /// that only the user may do. One a line.
    pub bypasses: PathBuf,
    /// The file that exists while systemd listens on the socket and starts the
    /// daemon. It contains the workspace's path, unescaped; a unit finds it by
    /// the key.
    pub service: PathBuf,
}

impl Places {
    /// Returns the places of the workspace with this canonical path. `socket`
    /// is the value of [`SOCKET_VARIABLE`], if it is set.
    pub fn new(base: &BaseDirectories, workspace: &Path, socket: Option<&OsStr>) -> Self {
        let mut places = Self::of_key(base, &key(workspace));
        places.workspace_config = workspace.join(".touchmark.toml");
        if let Some(socket) = socket.filter(|socket| !socket.is_empty()) {
            places.socket = PathBuf::from(socket);
        }
        places
    }

    /// Returns the places of the workspace with this [`key`]. The path of the
    /// workspace's configuration file is empty, since the workspace's path is
    /// not known.
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
            pauses: base.pauses_file(),
            bypasses: base.state_directory().join("bypasses"),
            service: base.services_directory().join(key),
            runtime,
            key: key.to_owned(),
        }
    }

    /// Returns the path of the socket if [`SOCKET_VARIABLE`] is not set.
    pub fn usual_socket(&self) -> PathBuf {
        self.runtime.join(format!("{}.sock", self.key))
    }

    /// Returns the path of the ring in which a witness makes its marks. `witness`
    /// is its name: the id of its window, such as `c5`, or that of an agent's
    /// witness.
    pub fn ring(&self, witness: &str) -> PathBuf {
        self.rings().join(witness)
    }

    /// Returns the name of the witness with this ring; `None` if it is no ring of
    /// this workspace.
    pub fn witness(&self, ring: &Path) -> Option<String> {
        let name = ring.file_name()?.to_str()?;
        (self.ring(name) == ring).then(|| name.to_owned())
    }

    /// Returns the directory of the rings.
    pub fn rings(&self) -> PathBuf {
        self.state.join("rings")
    }

    /// Returns whether the name has the form of a [`key`].
    pub fn is_key(name: &str) -> bool {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        name.len() == 16 && name.bytes().all(digit)
    }
}

/// The daemon that has locked a lock file. The file's content is three lines,
/// each ended by a line feed. The last line may contain further line feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The id of the daemon's process.
    pub pid: u32,
    /// The path of the socket that it listens on. `None`, written as an empty
    /// line, if that path contains a line feed.
    pub socket: Option<PathBuf>,
    /// The workspace's canonical path.
    pub workspace: PathBuf,
}

impl Holder {
    /// Returns the lock file's content.
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

    /// Parses a lock file's content. Returns `None` if it is incomplete, for
    /// example because the daemon is just writing it.
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

/// Returns the workspace's key: the first 16 hex digits of the SHA-256 of its
/// canonical path's bytes.
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
        // The output of `printf /abc | sha256sum`.
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
            // A shortened text could name another workspace.
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
