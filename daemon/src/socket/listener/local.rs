//! Linux's calls, which set mode and flags when the socket is created.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use interprocess::local_socket::{
    GenericFilePath, ListenerNonblockingMode, ListenerOptions, ToFsName,
};
use interprocess::os::unix::local_socket::ListenerOptionsExt;
use interprocess::os::unix::uds_local_socket::tokio::Listener;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, connect, socket_with,
};

/// The maximum length of a socket's path in bytes: `sun_path` less its
/// terminator.
pub const MAX_PATH: usize = 107;

/// Binds a socket with mode 0600.
pub(super) fn listen(path: &Path) -> io::Result<Listener> {
    ListenerOptions::new()
        .name(path.to_fs_name::<GenericFilePath>()?)
        .mode(0o600)
        // `Listener`'s own `drop` removes the name, and only if it still refers
        // to the socket.
        .reclaim_name(false)
        .nonblocking(ListenerNonblockingMode::Both)
        .create_tokio_as::<Listener>()
}

/// Returns a connection that is already waiting.
pub(super) fn accept_waiting(listener: &Listener) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(accept_with(listener.inner(), flags)?.into())
}

/// Returns whether a process accepts connections at a path.
pub(super) fn is_listened_on(path: &Path) -> bool {
    let dial = || -> rustix::io::Result<()> {
        let address = SocketAddrUnix::new(path)?;
        // A full queue must not block the loop.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &address)
    };
    matches!(dial(), Ok(()) | Err(Errno::AGAIN))
}
