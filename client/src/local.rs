//! Unix sockets, and the processes and users behind them.

#[cfg_attr(not(target_os = "linux"), path = "local/calls/unix.rs")]
mod calls;
#[cfg_attr(not(target_os = "linux"), path = "local/locks/unix.rs")]
pub(crate) mod locks;

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use touchmark_proto::trust::Me;

pub(crate) use std::os::unix::net::UnixStream as Stream;
#[cfg(feature = "aio")]
pub(crate) use tokio::net::UnixStream as AsyncStream;
#[cfg(feature = "aio")]
pub(crate) use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub(crate) use calls::{MAX_SOCKET_BYTES, check_peer, send_at_once, try_dial};

/// Returns whether the file is a socket.
pub(crate) fn is_socket(file: &Metadata) -> bool {
    file.file_type().is_socket()
}

/// Returns the user of this process.
pub(crate) fn me() -> Me {
    Me::new(geteuid().as_raw())
}

/// Returns whether the file belongs to this user.
pub(crate) fn is_own(file: &Metadata) -> bool {
    file.uid() == geteuid().as_raw()
}

/// Returns whether a process with this id exists. The id may have been reused
/// by another process.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}
