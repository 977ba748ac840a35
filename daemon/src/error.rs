//! Errors that end the daemon. An error that fails one request is
//! [`touchmark_proto::Error`]; a condition that degrades one path is in
//! `status`.

use std::io;
use std::path::PathBuf;

/// An error because of which the daemon cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another daemon of this workspace is running (SEC-1).
    #[error("a daemon of this workspace runs already (pid {pid}): {}", socket.display())]
    AlreadyRunning {
        /// The path of its socket.
        socket: PathBuf,
        /// Its process id; 0 if unknown.
        pid: u32,
    },
    /// The path of the workspace does not name a directory.
    #[error("{}: not a workspace: {cause}", path.display())]
    Workspace {
        /// The path that was given.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A process that does not have the lock listens on the daemon's socket.
    #[error("another process listens at {}", socket.display())]
    SocketTaken {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// The instance of a systemd unit names no known workspace.
    #[error("instance {key}: {reason}")]
    Instance {
        /// The instance's name: a workspace's key.
        key: String,
        /// Why no workspace is found for it.
        reason: String,
    },
    /// The socket that the service manager passed is not where clients look for
    /// it.
    #[error("the socket passed is {}, clients look for {}", passed.display(), wanted.display())]
    PassedSocket {
        /// The path to which the passed socket is bound.
        passed: PathBuf,
        /// The path at which clients look.
        wanted: PathBuf,
    },
    /// A directory is not safe for sockets or state (SEC-1).
    #[error("{}: {reason}", path.display())]
    Untrusted {
        /// The directory.
        path: PathBuf,
        /// Why it is not safe.
        reason: String,
    },
    /// The socket's path is longer than the system allows.
    #[error("{}: a socket's path has at most {limit} bytes", path.display())]
    SocketPath {
        /// The socket's path.
        path: PathBuf,
        /// The maximum length, in bytes.
        limit: usize,
    },
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The system refused an action on a path.
    #[error("{}: cannot {action}: {cause}", path.display())]
    Io {
        /// The action, as a verb: `read`.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// The watcher or another part of the daemon could not start.
    #[error("{part}: {cause}")]
    Part {
        /// The name of the part.
        part: &'static str,
        /// The cause.
        cause: String,
    },
}

/// What to do about a socket path that is too long.
pub(crate) const SHORTER: &str = "set XDG_RUNTIME_DIR or TOUCHMARK_SOCKET to a shorter path";

impl Error {
    /// Returns the exit code of the process that this error ends: 1 if a daemon
    /// runs already, 2 for wrong use, 3 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::AlreadyRunning { .. } | Self::SocketTaken { .. } => 1,
            Self::Workspace { .. }
            | Self::Config(_)
            | Self::Instance { .. }
            | Self::PassedSocket { .. } => 2,
            _ => 3,
        }
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::AlreadyRunning { .. } => "use that daemon, or end it with `touchmark stop`",
            Self::Workspace { .. } => "name an existing directory with --workspace",
            Self::SocketTaken { .. } => {
                "systemd does, where a service is installed: see `touchmark service status`"
            }
            Self::Instance { .. } => "in the workspace: `touchmark service install`",
            Self::PassedSocket { .. } => {
                "set ListenStream= to that path, or TOUCHMARK_SOCKET for daemon and clients"
            }
            Self::Untrusted { .. } => {
                "make it a directory of your own with mode 0700, or remove it"
            }
            Self::SocketPath { .. } => SHORTER,
            Self::Config(_) => "correct the file; see the table of keys in the documentation",
            Self::Store(error) => error.hint(),
            Self::Io { .. } | Self::Part { .. } => "run `touchmark doctor`",
        }
    }

    /// Returns a closure for `map_err` that makes an [`Error::Io`].
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io {
            action,
            path,
            cause,
        }
    }
}
