//! The launcher: waits for the target's end, forwards signals, and stops when
//! the target stops.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, wait as wait_any};

use super::Shared;
use crate::proc_stat::{Stat, stat};
use crate::sys;

/// The signals that the target gets from the launcher. The kernel's own, such
/// as a terminal's, reach both by themselves.
const FORWARDED: [i32; 12] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGCONT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// How long a holder has to tell how the target ended.
const PATIENCE: Duration = Duration::from_millis(300);

/// Returns the signals that the launcher reads instead of being interrupted.
fn blocked() -> Vec<i32> {
    let mut blocked = FORWARDED.to_vec();
    blocked.push(libc::SIGCHLD);
    blocked
}

/// Returns what the launcher reads its signals from.
///
/// # Errors
/// The system's.
pub(super) fn signals() -> std::io::Result<OwnedFd> {
    sys::signal_fd(&blocked())
}

/// Waits until the target has ended, and returns the status to exit with.
/// `None` if the target was never started.
pub(super) fn wait(
    shared: &Shared,
    reports: OwnedFd,
    signals: &OwnedFd,
    mask: &sys::Mask,
) -> Option<u8> {
    sys::block_also(mask, &blocked());
    let mut launcher = Launcher {
        shared,
        reports: Some(reports),
        target: None,
        ended: None,
        early: Vec::new(),
    };
    loop {
        if let Some(status) = shared.status() {
            launcher.linger(signals);
            return Some(exit_status(status));
        }
        launcher.poll(signals);
        // First, so that SIGCONT reaches the target before its state is read.
        for (signal, is_kernels) in received(signals.as_fd()) {
            match signal {
                libc::SIGCHLD => launcher.reap(),
                _ if is_kernels => {}
                _ => launcher.forward(signal),
            }
        }
        if launcher.listen() == Some(b'N') {
            return None;
        }
        if launcher.reports.is_none() && shared.target.load(SeqCst) == 0 {
            return None;
        }
        launcher.look();
    }
}

/// How long the launcher waits for the guardian after the target.
const LINGER: Duration = Duration::from_millis(4);

/// What the launcher has.
struct Launcher<'s> {
    shared: &'s Shared,
    /// What the holders say; `None` once both are gone.
    reports: Option<OwnedFd>,
    target: Option<OwnedFd>,
    /// When the target was seen to have ended.
    ended: Option<Instant>,
    /// The signals that came before the target.
    early: Vec<i32>,
}

impl Launcher<'_> {
    /// Waits for anything.
    fn poll(&self, signals: &OwnedFd) {
        let mut waits = vec![PollFd::new(signals, PollFlags::IN)];
        if let Some(reports) = &self.reports {
            waits.push(PollFd::new(reports, PollFlags::IN));
        }
        let mut limit = None;
        match &self.target {
            Some(target) if self.ended.is_none() => {
                waits.push(PollFd::new(target, PollFlags::IN));
            }
            // Only time can tell more.
            Some(_) => limit = Some(10),
            None => {}
        }
        let limit = limit.map(|milliseconds: i64| Timespec {
            tv_sec: 0,
            tv_nsec: milliseconds * 1_000_000,
        });
        let _interrupted = poll(&mut waits, limit.as_ref());
    }

    /// Reads what the holders say. Returns the last word.
    fn listen(&mut self) -> Option<u8> {
        let reports = self.reports.as_ref()?;
        let mut words = [0; 64];
        let mut waits = [PollFd::new(reports, PollFlags::IN)];
        let now = Timespec::default();
        if !poll(&mut waits, Some(&now)).is_ok_and(|ready| ready > 0) {
            return None;
        }
        let got = match rustix::io::read(reports, &mut words) {
            Ok(0) => {
                self.reports = None;
                // The target is this process's child by now.
                self.reap();
                return None;
            }
            Ok(got) => got,
            Err(Errno::INTR | Errno::AGAIN) => return None,
            Err(_) => {
                self.reports = None;
                return None;
            }
        };
        for word in &words[..got] {
            match word {
                b'T' => self.meet(),
                b'S' => self.stop(),
                _ => {}
            }
        }
        words[..got].last().copied()
    }

    /// The target was started.
    fn meet(&mut self) {
        let pid = self.shared.target.load(SeqCst);
        let pid = Pid::from_raw(pid as i32);
        self.target = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        for signal in std::mem::take(&mut self.early) {
            self.forward(signal);
        }
    }

    /// Stops as the target did, so that the shell that waits for this process
    /// sees it.
    fn stop(&self) {
        if self.stat().is_some_and(|stat| stat.state == b'T') {
            sys::kill(sys::own_pid(), libc::SIGSTOP);
        }
    }

    /// Gives the target a signal that only this process got.
    fn forward(&mut self, signal: i32) {
        match self.shared.target.load(SeqCst) {
            0 => self.early.push(signal),
            target => {
                sys::kill(target, signal);
            }
        }
    }

    /// Waits for children that have ended: the target is one of them once both
    /// holders are gone.
    fn reap(&self) {
        while let Ok(Some((pid, status))) = wait_any(WaitOptions::NOHANG) {
            let target = self.shared.target.load(SeqCst);
            if pid.as_raw_nonzero().get() as u32 == target {
                self.shared.set_status(status.as_raw());
            }
        }
    }

    /// Waits a moment for the guardian, which exits at once if nothing of the
    /// tree is left: not every first process of a container waits for it.
    fn linger(&self, signals: &OwnedFd) {
        let since = Instant::now();
        while let Ok(ended) = wait_any(WaitOptions::NOHANG) {
            if ended.is_some() {
                continue;
            }
            let Some(left) = LINGER.checked_sub(since.elapsed()) else {
                return;
            };
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut waits = [PollFd::new(signals, PollFlags::IN)];
            let _time = poll(&mut waits, Some(&limit));
            received(signals.as_fd());
        }
    }

    /// Finds out by itself how the target ended if no holder says it, such as a
    /// stopped one.
    fn look(&mut self) {
        let Some(target) = &self.target else {
            return;
        };
        let mut waits = [PollFd::new(target, PollFlags::IN)];
        let now = Timespec::default();
        if !poll(&mut waits, Some(&now)).is_ok_and(|ready| ready > 0) {
            return;
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        self.reap();
        if ended.elapsed() > PATIENCE {
            // A holder has waited for it and exited before it told, or none has.
            let status = self.stat().map_or(0, |stat| stat.status);
            self.shared.set_status(status);
        }
    }

    fn stat(&self) -> Option<Stat> {
        let target = self.shared.target.load(SeqCst);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(format!("/proc/{target}"), flags, Mode::empty()).ok()?;
        stat(directory.as_fd()).ok()
    }
}

/// Reads the signals that came, and whether each is the kernel's.
fn received(signals: BorrowedFd<'_>) -> Vec<(i32, bool)> {
    const SIZE: usize = 128;
    let mut bytes = [0; 16 * SIZE];
    let got = rustix::io::read(signals, &mut bytes).unwrap_or(0);
    let (all, _) = bytes[..got].as_chunks::<SIZE>();
    let all = all.iter().map(|one| {
        let number = |at: usize| {
            let word = one[at..].first_chunk().copied();
            i32::from_ne_bytes(word.unwrap_or_default())
        };
        // `ssi_signo` and `ssi_code`.
        (number(0), number(8) == libc::SI_KERNEL)
    });
    all.collect()
}

/// Returns the exit status for a status as `waitpid` tells it.
fn exit_status(status: i32) -> u8 {
    match (libc::WIFSIGNALED(status), libc::WTERMSIG(status)) {
        (true, signal) => 128 + signal as u8,
        _ => libc::WEXITSTATUS(status) as u8,
    }
}
