//! Processes that are not this test's own children: daemons that commands
//! started.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::user::pause;
use crate::wire::PATIENCE;

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed()).expect("a process's number")
}

/// Sends a signal to a running process.
pub fn signal(process: u32, signal: Signal) {
    kill_process(pid(process), signal)
        .unwrap_or_else(|error| panic!("{signal:?} to {process}: {error}"));
}

/// Polls until a condition is true that cannot be awaited otherwise. `what` is
/// the panic's message if it stays false.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        pause(2);
    }
}

/// Waits until a process has exited.
pub fn wait_gone(process: u32) {
    let descriptor = match pidfd_open(pid(process), PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(Errno::SRCH) => return,
        Err(error) => panic!("process {process}: {error}"),
    };
    let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    let ended = poll(&mut waiting, Some(&patience)).expect("waiting for a process");
    assert_eq!(ended, 1, "process {process} does not end");
}

/// A process that is stopped until this value is dropped.
pub struct Stopped(u32);

impl Stopped {
    /// Stops a process, and waits until it has stopped.
    pub fn new(process: u32) -> Self {
        signal(process, Signal::STOP);
        let stopped = Self(process);
        until(&format!("{process} does not stop"), || {
            state(process) == Some('T')
        });
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ended = kill_process(pid(self.0), Signal::CONT);
    }
}

/// Returns the letter of a process's state, as `ps` prints it.
fn state(process: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Returns the daemons for workspaces below a directory, found by their command
/// lines. Exited processes that were not waited for do not count.
pub fn daemons_below(directory: &Path) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|process| {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = command.split(|&byte| byte == 0).collect();
            let below = |word: &&[u8]| word.starts_with(directory.as_os_str().as_bytes());
            words.iter().any(|word| word.ends_with(b"daemon"))
                && words.iter().any(below)
                && !matches!(state(*process), None | Some('Z' | 'X'))
        })
        .collect()
}
