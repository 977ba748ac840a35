//! System calls on other Unix systems, through `std`.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{SendFlags, send};
use touchmark_proto::trust::Owned;

use super::me;

/// The length in bytes of the longest path of a socket that the kernel accepts.
pub(crate) const MAX_SOCKET_BYTES: usize = 103;

/// Tries to connect once. The stream is non-blocking. On these systems a full
/// queue refuses the connection, which cannot be distinguished from a missing
/// listener; connecting never blocks.
pub(crate) fn try_dial(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Checks who can have created the socket, since these systems do not report
/// the user who listens.
///
/// # Errors
/// The reason why the daemon must not be used, as the inner error.
pub(crate) fn check_peer(_: &UnixStream, socket: &Path) -> io::Result<Result<(), String>> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let [directory, socket] = [directory, socket].map(std::fs::symlink_metadata);
    Ok(me().check_socket(Owned::from(&directory?), Owned::from(&socket?)))
}

/// Sends as many bytes as fit into the socket's buffer, without waiting. `send`
/// has no flag against SIGPIPE on some of these systems; `std` has set the
/// stream's option.
pub(crate) fn send_at_once(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(stream, bytes, SendFlags::DONTWAIT)?)
}
