//! Other Unixes, by what `std` has.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{SendFlags, send};
use touchmark_proto::trust::Owned;

use super::me;

/// The longest path of a socket that the kernel takes, in bytes.
pub(crate) const MAX_SOCKET_BYTES: usize = 103;

/// One try. A full queue refuses at once here, which cannot be told from
/// nobody listening; it never blocks. The stream does not, either.
pub(crate) fn try_dial(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Who listens is not told here: by who can have put the socket there.
///
/// # Errors
/// Why it must not be spoken to.
pub(crate) fn check_peer(_: &UnixStream, socket: &Path) -> io::Result<Result<(), String>> {
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let [directory, socket] = [directory, socket].map(std::fs::symlink_metadata);
    Ok(me().dials(Owned::from(&directory?), Owned::from(&socket?)))
}

/// Sends as much as there is room for, on a stream that blocks. Where `send`
/// has no flag against SIGPIPE, `std` has set the stream's option.
pub(crate) fn send_at_once(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    Ok(send(stream, bytes, SendFlags::DONTWAIT)?)
}
