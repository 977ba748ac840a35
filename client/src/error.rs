//! What can go wrong between a client and its daemon.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a call gave no answer, or which error the daemon answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing listens on the socket.
    #[error("no daemon answers at {}", socket.display())]
    NoDaemon {
        /// Where one was looked for.
        socket: PathBuf,
    },
    /// A daemon was started and did not come up.
    #[error("the daemon did not start: {reason}")]
    Start {
        /// What it said, or what failed.
        reason: String,
    },
    /// The answer did not come in time (LIFE-4). The request carried the same
    /// deadline, so a daemon that wakes up later does not act on it (ATTR-9).
    #[error("the daemon did not answer {method} within {} ms", after.as_millis())]
    Deadline {
        /// What was asked.
        method: &'static str,
        /// How long the client waited.
        after: Duration,
    },
    /// The daemon closed the connection.
    #[error("the daemon closed the connection{}", if reason.is_empty() { String::new() } else { format!(": {reason}") })]
    Gone {
        /// What is known about why; may be empty.
        reason: String,
    },
    /// More events are waiting than the client keeps: it did not read them.
    #[error("{kept} events were waiting unread, so the subscription was ended")]
    Lagged {
        /// How many the client kept.
        kept: usize,
    },
    /// What came over the socket is not an answer.
    #[error("the daemon sent something that is not an answer: {0}")]
    Protocol(String),
    /// The workspace or a place of touchmark's files cannot be used.
    #[error("{}: {reason}", path.display())]
    Place {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The daemon answered with an error.
    #[error(transparent)]
    Daemon(#[from] touchmark_proto::Error),
}

impl Error {
    /// A stable name: the daemon's own (`stale`, `busy`, ...) where it
    /// answered one.
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

    /// What to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Self::NoDaemon { .. } => "start one with `touchmark start`",
            Self::Start { .. } => "run `touchmark daemon` in the foreground to see why",
            Self::Deadline { .. } => {
                "the daemon is stopped or very busy: look at `touchmark status`, or give it more time"
            }
            Self::Gone { .. } => "connect again; a new daemon is started on demand",
            Self::Lagged { .. } => "read events as they come, and subscribe again with `since`",
            Self::Protocol(_) => "update the older of client and daemon",
            Self::Place { .. } => "name another workspace or socket",
            Self::Io { .. } => "check permissions and free space, then try again",
            Self::Daemon(error) => &error.hint,
        }
    }

    /// The daemon's error, where it answered one.
    pub fn daemon(&self) -> Option<&touchmark_proto::Error> {
        match self {
            Self::Daemon(error) => Some(error),
            _ => None,
        }
    }

    /// Whether another connection may succeed: the daemon went away or was
    /// never there.
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

    /// A broken connection, as far as the system's error tells.
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

/// The client's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
