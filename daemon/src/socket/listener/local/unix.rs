//! The calls of `std`, for Unix systems other than Linux.

use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use interprocess::os::unix::uds_local_socket::tokio::Listener;

/// The maximum length of a socket's path in bytes: `sun_path` less its
/// terminator.
pub const MAX_PATH: usize = 103;

/// Binds a socket with mode 0600. The mode is set a moment after the socket is
/// created; until then its directory protects it.
pub(super) fn listen(path: &Path) -> io::Result<Listener> {
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Listener::try_from(OwnedFd::from(listener))
}

/// Returns a connection that is already waiting.
pub(super) fn accept_waiting(listener: &Listener) -> io::Result<UnixStream> {
    // The result is another descriptor of the same socket, which does not
    // block.
    let same = UnixListener::from(listener.as_fd().try_clone_to_owned()?);
    let (stream, _unnamed) = same.accept()?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns whether a process accepts connections at a path. On these systems a
/// full queue refuses immediately, so it does not block, and the result is
/// false.
pub(super) fn is_listened_on(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}
