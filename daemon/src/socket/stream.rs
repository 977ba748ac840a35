//! A connection as the operating system provides it.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;

/// One connection.
pub type Stream = tokio::net::UnixStream;

/// Reads what is available, as much as fits. Returns the result and the number
/// of bytes; the result is `WouldBlock` if nothing more is available.
pub(super) fn take(stream: &Stream, buffer: &mut [u8]) -> (io::Result<()>, usize) {
    let mut taken = 0;
    let read = stream.try_io(Interest::READABLE, || {
        taken = rustix::io::read(stream, &mut *buffer)?;
        if (1..buffer.len()).contains(&taken) {
            // Nothing more is available, so no other read is needed until the
            // system reports new data.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    });
    (read, taken)
}

/// Returns the users at both ends, as the kernel reports them: the client's,
/// the daemon's.
///
/// # Errors
/// The system's error.
pub(super) fn users(stream: &Stream) -> io::Result<(u32, u32)> {
    let me = rustix::process::geteuid().as_raw();
    Ok((stream.peer_cred()?.uid(), me))
}

/// Returns the process that connected; `None` if the system does not report it,
/// for example in another container.
pub(super) fn process(stream: &Stream) -> Option<u32> {
    let pid = stream.peer_cred().ok()?.pid()?;
    u32::try_from(pid).ok().filter(|pid| *pid > 0)
}

/// Returns whether the client has closed the connection altogether, not only
/// its sending side (`printf ... | nc -N` still needs its answer).
pub(super) fn hung_up(stream: &Stream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    polled.is_err() || fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// Closes both directions.
pub(super) fn shut(stream: &Stream) -> io::Result<()> {
    Ok(rustix::net::shutdown(stream, rustix::net::Shutdown::Both)?)
}
