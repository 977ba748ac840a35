//! System calls on Linux.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::socket::{getsockopt, sockopt};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with,
};

use super::me;

/// The length in bytes of the longest path of a socket that the kernel accepts.
pub(crate) const MAX_SOCKET_BYTES: usize = 107;

/// Tries to connect once. Fails with `WouldBlock` if the queue is full. The
/// stream is non-blocking.
pub(crate) fn try_dial(socket: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &address)?;
    Ok(stream.into())
}

/// Checks the user who listens on the other side, as the kernel reports it.
///
/// # Errors
/// The reason why the daemon must not be used, as the inner error.
pub(crate) fn check_peer(stream: &UnixStream, _: &Path) -> io::Result<Result<(), String>> {
    // Not by `rustix` or `interprocess`: both fail if the peer's process has no
    // id here, as the host's daemon has none in a container.
    let peer = getsockopt(stream, sockopt::PeerCredentials)?;
    Ok(me().check_peer(peer.uid()))
}

/// Sends as many bytes as fit into the socket's buffer, without waiting.
pub(crate) fn send_at_once(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(send(stream, bytes, flags)?)
}
