//! The process that signals are forwarded to, on Linux: a pidfd.

use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A pidfd. After the command has exited, its process id may be another
/// process's.
pub(super) struct Target(OwnedFd);

impl Target {
    /// Returns the pidfd of a child; `None` if the system gives none.
    pub(super) fn of(child: &Child) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(child.id()).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    pub(super) fn send(&self, signal: Signal) {
        // The command may have just exited.
        let _gone = pidfd_send_signal(&self.0, signal);
    }
}

/// Returns the signals that this process was started to ignore, as bits.
pub(super) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
