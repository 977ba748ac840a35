//! The process as a whole.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Leaves the starter's terminal and directory (LIFE-1): a working directory
/// inside the workspace would keep its removal from being seen.
pub fn detach(on_demand: bool) {
    if on_demand {
        // Fails where the starter has made this a session leader already.
        let _is_leader = rustix::process::setsid();
    }
    let _stays = std::env::set_current_dir("/");
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Comes back when that process has ended, at once if there is none. The
/// process meant is the one that has the number at the call.
///
/// # Errors
/// If the system gives no descriptor for it.
pub fn process_end(pid: u32) -> impl Future<Output = io::Result<()>> {
    let opened = open_process(pid);
    async move {
        if let Some(process) = opened? {
            // Readable from its end on.
            // Deprecated for what is no owned descriptor; this is one.
            #[allow(deprecated)]
            let process = AsyncFd::with_interest(process, Interest::READABLE)?;
            let _ended = process.readable().await?;
        }
        Ok(())
    }
}

/// A descriptor of a process; `None` if there is no such process.
fn open_process(pid: u32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(process) => Ok(Some(process)),
        Err(Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Descriptors that a daemon with that many connections may need.
pub fn descriptors(connections: u32) -> u64 {
    /// Store, watcher, reads in hand.
    const OTHERS: u64 = 512;
    u64::from(connections) + OTHERS
}

/// Allows that many open descriptors, or as many as the system does.
pub fn raise_descriptor_limit(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current else { return };
    let target = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if current < target {
        let raised = Rlimit {
            current: Some(target),
            maximum: limit.maximum,
        };
        if let Err(errno) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!("{current} open files at most: {errno}");
        }
    }
}

/// This process's resident memory in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}
