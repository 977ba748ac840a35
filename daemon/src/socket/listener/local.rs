//! Linux's calls: what they make is right from the first moment on.

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

/// The most bytes of a socket's path: `sun_path` less its terminator.
pub const MAX_PATH: usize = 107;

/// Binds with mode 0600.
pub(super) fn listen(path: &Path) -> io::Result<Listener> {
    ListenerOptions::new()
        .name(path.to_fs_name::<GenericFilePath>()?)
        .mode(0o600)
        // Only while it is ours, so by our own drop.
        .reclaim_name(false)
        .nonblocking(ListenerNonblockingMode::Both)
        .create_tokio_as::<Listener>()
}

/// A connection that waits already.
pub(super) fn accept_waiting(listener: &Listener) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(accept_with(listener.inner(), flags)?.into())
}

/// Whether somebody takes connections there.
pub(super) fn is_listened_on(path: &Path) -> bool {
    let dial = || -> rustix::io::Result<()> {
        let address = SocketAddrUnix::new(path)?;
        // A queue that is full must not hold up the loop.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &address)
    };
    matches!(dial(), Ok(()) | Err(Errno::AGAIN))
}
