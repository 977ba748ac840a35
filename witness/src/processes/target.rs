//! The target: the process that becomes the command.

use std::ffi::{CString, OsString};
use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::Launch;
use crate::marks::Refusal;
use crate::sys;

/// The exit status if there is no such program.
const NOT_FOUND: u8 = 127;

/// The exit status if the program cannot be run.
const CANNOT_RUN: u8 = 126;

/// Puts the filter on this process, gives its listener to both holders, and
/// becomes the command once both have it. Without a filter it becomes the
/// command as well.
pub(super) fn run(
    launch: &Launch,
    command: &[CString],
    mask: &sys::Mask,
    holders: [OwnedFd; 2],
) -> ! {
    match install() {
        Ok(listener) => {
            let given = { holders.iter() }.filter(|holder| give(holder.as_fd(), &listener));
            let given: Vec<_> = given.collect();
            // A holder that is gone has no answer; the other one replaces it.
            for holder in given {
                let mut answer = [0];
                while rustix::io::read(holder, &mut answer) == Err(rustix::io::Errno::INTR) {}
            }
        }
        Err(why) => {
            say(launch, why);
            for holder in &holders {
                let _gone = rustix::io::write(holder, &[why as u8]);
            }
        }
    }
    drop(holders);
    sys::set_mask(mask);
    let status = become_command(launch, command);
    sys::exit(status)
}

/// Sends the listener to a holder, with 0 in place of a refusal's number.
fn give(holder: BorrowedFd<'_>, listener: &OwnedFd) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [listener.as_fd()];
    let message = SendAncillaryMessage::ScmRights(&descriptors);
    let data = [IoSlice::new(&[0])];
    control.push(message) && sendmsg(holder, &data, &mut control, SendFlags::NOSIGNAL).is_ok()
}

/// Puts the filter on this process. Returns its listener. Where the kernel can,
/// only a fatal signal interrupts a caller that waits for its answer.
fn install() -> Result<OwnedFd, Refusal> {
    let mut program = crate::filter::program().ok_or(Refusal::Unsupported)?;
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mut flags = killable;
    let mut has_given_up = false;
    loop {
        let error = match sys::install(&mut program, flags) {
            Ok(listener) => return Ok(listener),
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EINVAL) if flags & killable != 0 => flags &= !killable,
            // It needs `no_new_privs`, or CAP_SYS_ADMIN.
            Some(libc::EACCES) if !has_given_up => {
                sys::set_no_new_privileges().map_err(|_| Refusal::NotPermitted)?;
                has_given_up = true;
            }
            Some(libc::EBUSY) => return Err(Refusal::Nested),
            Some(libc::EINVAL | libc::ENOSYS) => return Err(Refusal::NoSeccomp),
            _ => return Err(Refusal::NotPermitted),
        }
    }
}

/// Says on the standard error why the command runs unwitnessed.
pub(super) fn say(launch: &Launch, why: Refusal) {
    if !launch.quiet {
        let text = format!("touchmark-witness: the command runs unwitnessed: {why}\n");
        let _closed = io::stderr().write_all(text.as_bytes());
    }
}

/// Becomes the command, with the signals and streams that this program was
/// started with. Returns an exit status if that fails.
pub(super) fn become_command(launch: &Launch, command: &[CString]) -> u8 {
    sys::restore_start();
    let error = sys::execute(command);
    fail(&launch.command, &error)
}

/// Says why the command cannot be run. Returns the exit status for it.
pub(super) fn fail(command: &[OsString], error: &io::Error) -> u8 {
    let program = command.first().cloned().unwrap_or_default();
    let text = format!("touchmark-witness: {}: {error}\n", program.display());
    let _closed = io::stderr().write_all(text.as_bytes());
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    }
}
