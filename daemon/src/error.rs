//! What stops the daemon. What fails one request is
//! [`touchmark_proto::Error`]; what degrades one path is in `status`.

use std::io;
use std::path::PathBuf;

/// The daemon cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another daemon of this workspace runs (SEC-1).
    #[error("a daemon of this workspace runs already (pid {pid}): {}", socket.display())]
    AlreadyRunning {
        /// Its address.
        socket: PathBuf,
        /// Its process, 0 if it did not say.
        pid: u32,
    },
    /// The workspace is not a directory that can be named.
    #[error("{}: not a workspace: {cause}", path.display())]
    Workspace {
        /// What was named.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// Somebody listens where the daemon would, who does not hold the lock.
    #[error("somebody else listens at {}", socket.display())]
    SocketTaken {
        /// Where.
        socket: PathBuf,
    },
    /// A systemd unit's instance of which nothing is known.
    #[error("instance {key}: {reason}")]
    Instance {
        /// Its name: a workspace's key.
        key: String,
        /// Why it leads to no workspace.
        reason: String,
    },
    /// The socket that the manager passed is not where clients look.
    #[error("the socket passed is {}, clients look for {}", passed.display(), wanted.display())]
    PassedSocket {
        /// Where it is bound.
        passed: PathBuf,
        /// Where it would have to be.
        wanted: PathBuf,
    },
    /// A directory cannot be trusted with sockets or state (SEC-1).
    #[error("{}: {reason}", path.display())]
    Untrusted {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The socket's path is longer than the system takes.
    #[error("{}: a socket's path has at most {limit} bytes", path.display())]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// The most bytes.
        limit: usize,
    },
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The system refused something at the named place.
    #[error("{}: cannot {action}: {cause}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// The watcher or another part could not start.
    #[error("{part}: {cause}")]
    Part {
        /// Which part.
        part: &'static str,
        /// Why.
        cause: String,
    },
}

impl Error {
    /// The exit code of the process that this ends: 1 for a daemon that runs
    /// already, 2 for a wrong use, 3 for everything else.
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

    /// What to do about it.
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
            Self::SocketPath { .. } => "set XDG_RUNTIME_DIR or TOUCHMARK_SOCKET to a shorter path",
            Self::Config(_) => "correct the file; see the table of keys in the documentation",
            Self::Store(error) => error.hint(),
            Self::Io { .. } | Self::Part { .. } => "run `touchmark doctor`",
        }
    }

    /// Closure for `map_err`.
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
