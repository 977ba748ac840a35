//! A connection as the system has it.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// One connection.
pub type Stream = tokio::net::UnixStream;

/// The users at both ends, as the kernel names them: theirs, ours.
///
/// # Errors
/// The system's words.
pub(super) fn users(stream: &Stream) -> io::Result<(u32, u32)> {
    let me = rustix::process::geteuid().as_raw();
    Ok((stream.peer_cred()?.uid(), me))
}

/// Whether the client is gone altogether, rather than done with speaking
/// (`printf ... | nc -N` still wants its answer).
pub(super) fn hung_up(stream: &Stream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    polled.is_err() || fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}
