//! Linux's calls.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

use super::me;

/// The longest path of a socket that the kernel takes, in bytes.
pub(crate) const MAX_SOCKET_BYTES: usize = 107;

/// One try. `WouldBlock` says that the queue is full. The stream does not
/// block.
pub(crate) fn try_dial(socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &address)?;
    Ok(stream.into())
}

/// The user who listens on the other side, as the kernel has it.
///
/// # Errors
/// Why it must not be spoken to.
pub(crate) fn check_peer(stream: &UnixStream, _: &Path) -> io::Result<Result<(), String>> {
    let peer = socket_peercred(stream)?;
    Ok(me().hears(peer.uid.as_raw()))
}

/// Sends as much as there is room for, on a stream that blocks.
pub(crate) fn send_at_once(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(send(stream, bytes, flags)?)
}
