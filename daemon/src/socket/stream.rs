//! A connection as the system has it.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;

/// One connection.
pub type Stream = tokio::net::UnixStream;

/// Takes what there is, as much as fits, and says how much beside how it went:
/// `WouldBlock` if that was all.
pub(super) fn take(stream: &Stream, buffer: &mut [u8]) -> (io::Result<()>, usize) {
    let mut taken = 0;
    let read = stream.try_io(Interest::READABLE, || {
        taken = rustix::io::read(stream, &mut *buffer)?;
        if (1..buffer.len()).contains(&taken) {
            // That was all there is: no other look is needed until
            // the system says that there is more.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    });
    (read, taken)
}

/// The users at both ends, as the kernel names them: theirs, ours.
///
/// # Errors
/// The system's words.
pub(super) fn users(stream: &Stream) -> io::Result<(u32, u32)> {
    let me = rustix::process::geteuid().as_raw();
    Ok((stream.peer_cred()?.uid(), me))
}

/// The process that connected; `None` where the system does not tell, as of
/// one that it does not show to this one.
pub(super) fn process(stream: &Stream) -> Option<u32> {
    let pid = stream.peer_cred().ok()?.pid()?;
    u32::try_from(pid).ok().filter(|pid| *pid > 0)
}

/// Whether the client is gone altogether, rather than done with speaking
/// (`printf ... | nc -N` still wants its answer).
pub(super) fn hung_up(stream: &Stream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    polled.is_err() || fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

/// Ends both directions.
pub(super) fn shut(stream: &Stream) -> io::Result<()> {
    Ok(rustix::net::shutdown(stream, rustix::net::Shutdown::Both)?)
}
