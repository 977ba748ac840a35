//! Whom to pass signals on to, by number.

use std::process::Child;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A child's number, which is its own until it is waited for.
pub(super) struct Target(Pid);

impl Target {
    /// `None` if it has no such number.
    pub(super) fn of(child: &Child) -> Option<Self> {
        Pid::from_raw(i32::try_from(child.id()).ok()?).map(Self)
    }

    pub(super) fn send(&self, signal: Signal) {
        // Looks without waiting: an error says that it is no child any more.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if waitid(WaitId::Pid(self.0), look).is_ok() {
            let _gone = kill_process(self.0, signal);
        }
    }
}

/// Not told without `unsafe` code here: none, so that a command which should
/// ignore a signal has it passed on.
pub(super) fn ignored_signals() -> u64 {
    0
}
