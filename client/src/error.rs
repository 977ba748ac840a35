//! The errors of the client, and those that the daemon returned.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a call failed: an error of the client, or one that the daemon returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No daemon listens on the socket.
    #[error("no daemon answers at {}", socket.display())]
    NoDaemon {
        /// The path of the socket.
        socket: PathBuf,
    },
    /// A daemon was started and did not answer.
    #[error("the daemon did not start: {reason}")]
    Start {
        /// What the daemon printed, or what failed.
        reason: String,
    },
    /// The answer did not come in time (LIFE-4). The request had the same
    /// deadline, so a daemon that reads it later does not carry it out
    /// (ATTR-9).
    #[error("the daemon did not answer {method} within {} ms", after.as_millis())]
    Deadline {
        /// The method of the request.
        method: &'static str,
        /// The time that the client waited.
        after: Duration,
    },
    /// The daemon closed the connection.
    #[error("the daemon closed the connection{}", if reason.is_empty() { String::new() } else { format!(": {reason}") })]
    Gone {
        /// The reason, if it is known; else empty.
        reason: String,
    },
    /// The client stopped reading events, and its buffer is full.
    #[error("{kept} events were waiting unread, so the subscription was ended")]
    Lagged {
        /// The number of events in the buffer.
        kept: usize,
    },
    /// The bytes from the socket are not a valid answer.
    #[error("the daemon sent something that is not an answer: {0}")]
    Protocol(String),
    /// The workspace, or a path of touchmark's own files, cannot be used.
    #[error("{}: {reason}", path.display())]
    Place {
        /// The path that cannot be used.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The operating system returned an error.
    #[error("{doing}: {source}")]
    Io {
        /// What the client was doing.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The daemon returned an error.
    #[error(transparent)]
    Daemon(#[from] touchmark_proto::Error),
}

impl Error {
    /// Returns the stable name of the error. For an error that the daemon
    /// returned it is the daemon's (`stale`, `busy`, ...).
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoDaemon { .. } => "noDaemon",
            Self::Start { .. } => "startFailed",
            Self::Deadline { .. } => "deadline",
            Self::Gone { .. } => "connectionClosed",
            Self::Lagged { .. } => "lagged",
            Self::Protocol(_) => "protocol",
            Self::Place { .. } => "place",
            Self::Io { .. } => "io",
            Self::Daemon(error) => error.code.name(),
        }
    }

    /// Returns what to do about the error.
    pub fn hint(&self) -> &str {
        match self {
            Self::NoDaemon { .. } => "start one with `touchmark start`",
            Self::Start { .. } => "run `touchmark daemon` in the foreground to see why",
            Self::Deadline { .. } => {
                "the daemon is stopped or very busy: look at `touchmark status`, or give it more time"
            }
            Self::Gone { .. } => touchmark_proto::ErrorCode::ShuttingDown.hint(),
            Self::Lagged { .. } => "read events as they come, and subscribe again with `since`",
            Self::Protocol(_) => "update the older of client and daemon",
            Self::Place { .. } => "name another workspace or socket",
            Self::Io { .. } => "check permissions and free space, then try again",
            Self::Daemon(error) => &error.hint,
        }
    }

    /// Returns the daemon's error, or `None` if it is an error of the client.
    pub fn daemon(&self) -> Option<&touchmark_proto::Error> {
        match self {
            Self::Daemon(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether another connection may succeed: the daemon does not run,
    /// or has closed this connection.
    pub fn is_disconnected(&self) -> bool {
        match self {
            Self::NoDaemon { .. } | Self::Gone { .. } => true,
            Self::Daemon(error) => error.code == touchmark_proto::ErrorCode::ShuttingDown,
            _ => false,
        }
    }

    pub(crate) fn io(doing: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            doing: doing.into(),
            source,
        }
    }

    /// Returns the error for a connection that the system reports as broken.
    pub(crate) fn gone(source: &io::Error) -> Self {
        let reason = match source.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => String::new(),
            _ => source.to_string(),
        };
        Self::Gone { reason }
    }
}

/// The result of the client's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;
