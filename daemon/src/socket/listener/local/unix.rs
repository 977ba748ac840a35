//! Other Unixes, by what `std` has.

use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use interprocess::os::unix::uds_local_socket::tokio::Listener;

/// The most bytes of a socket's path: `sun_path` less its terminator.
pub const MAX_PATH: usize = 103;

/// Binds with mode 0600. It gets that a moment later; until then its directory
/// keeps others out.
pub(super) fn listen(path: &Path) -> io::Result<Listener> {
    let listener = UnixListener::bind(path)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Listener::try_from(OwnedFd::from(listener))
}

/// A connection that waits already.
pub(super) fn accept_waiting(listener: &Listener) -> io::Result<UnixStream> {
    // Another descriptor of the same socket, which does not block.
    let same = UnixListener::from(listener.as_fd().try_clone_to_owned()?);
    let (stream, _unnamed) = same.accept()?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Whether somebody takes connections there. A full queue refuses at once
/// here, so nothing is held up by one, and it looks as if nobody did.
pub(super) fn is_listened_on(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}
