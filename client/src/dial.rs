//! Connects without blocking. A plain `connect` would block without end if the
//! daemon is stopped and its queue of connections is full (LIFE-4).

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::local::{self, Stream};

/// The pause between two attempts while the queue is full.
pub(crate) const AGAIN: Duration = Duration::from_millis(10);

/// The listening process belongs to a user who is not trusted (SEC-8).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Stranger(String);

/// Tries to connect once. Fails with `WouldBlock` if the queue is full. The
/// stream is non-blocking. The peer must belong to this user or to root.
pub(crate) fn try_dial(socket: &Path) -> io::Result<Stream> {
    let stream = local::try_dial(socket)?;
    match local::check_peer(&stream, socket)? {
        Ok(()) => Ok(stream),
        Err(why) => Err(io::Error::other(Stranger(why))),
    }
}

/// Connects within the deadline and returns a blocking stream.
pub(crate) fn dial(socket: &Path, deadline: Duration) -> Result<Stream> {
    let until = Instant::now() + deadline;
    let stream = loop {
        match try_dial(socket) {
            Err(error) if is_full(&error) && Instant::now() < until => std::thread::sleep(AGAIN),
            result => break result.map_err(|error| refused(socket, error, deadline))?,
        }
    };
    stream
        .set_nonblocking(false)
        .map_err(|error| Error::io("make the socket block", error))?;
    Ok(stream)
}

/// Returns whether the daemon's queue of connections is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Returns the client's error for a failed connection.
pub(crate) fn refused(socket: &Path, error: io::Error, deadline: Duration) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::NoDaemon {
            socket: socket.to_owned(),
        },
        io::ErrorKind::WouldBlock => Error::Deadline {
            method: "connect",
            after: deadline,
        },
        _ if error.get_ref().is_some_and(|why| why.is::<Stranger>()) => Error::Place {
            path: socket.to_owned(),
            reason: error.to_string(),
        },
        _ => Error::io(format!("connect to {}", socket.display()), error),
    }
}

// On other systems a full queue refuses the connection.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_full_queue_is_an_error_at_the_deadline() {
        let home = tempfile::tempdir().unwrap();
        let socket = home.path().join("s");
        let _never_accepts = UnixListener::bind(&socket).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match try_dial(&socket) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert!(is_full(&full), "{full}");
        let error = dial(&socket, Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.code(), "deadline");
        assert!(crate::sockets::listens(&socket), "full is not gone");
    }
}
