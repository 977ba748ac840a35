//! The process that signals are forwarded to, on other systems: a process id.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A child's process id. It stays the child's until the child is waited for.
pub(super) struct Target(Pid);

impl Target {
    /// Returns the process id of a child; `None` if it is out of range.
    pub(super) fn of(child: &Child) -> Option<Self> {
        Pid::from_raw(i32::try_from(child.id()).ok()?).map(Self)
    }

    pub(super) fn send(&self, signal: Signal) {
        // Checks without waiting. An error means that the process is no longer
        // a child.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::Pid(self.0), look).is_ok() {
            let _gone = kill_process(self.0, signal);
        }
    }
}

/// Returns no signals: they cannot be read here without `unsafe`. So a signal
/// that the command should ignore is forwarded to it.
pub(super) fn ignored_signals() -> u64 {
    0
}
