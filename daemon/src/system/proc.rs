//! What Linux tells of processes and of itself.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use touchmark_proto::Error;

use crate::system::process::{Process, Umask};

/// Comes back when that process has ended, at once if there is none. The
/// process meant is the one that has the number at the call.
///
/// # Errors
/// If the system gives no descriptor for it.
pub(crate) fn process_end(pid: u32) -> impl Future<Output = io::Result<()>> {
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

/// More processes than these do not stand above one another.
const ABOVE: usize = 64;

/// That process and those above it, without the first of all; empty if there
/// is no such process.
pub(crate) fn and_above(pid: u32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = pid;
    while let Some((parent, start)) = started(next)
        && next > 1
        && found.len() < ABOVE
    {
        found.push(Process { pid: next, start });
        next = parent;
    }
    found
}

/// The parent of a process, and when it was started.
fn started(pid: u32) -> Option<(u32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    // A zombie has ended; its parent has not waited for it yet.
    let ended = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    (!ended).then_some((parent, start))
}

/// With which mask a process makes its files (proc(5), `Umask` of `status`);
/// `None` if there is no such process.
pub(crate) fn umask(pid: u32) -> Option<Umask> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok().map(Umask)
}

/// When the system started each of these processes, in ticks since its boot;
/// `None` where there is none of that number (proc(5), field 22 of `stat`).
///
/// # Errors
/// None here; where the system does not tell.
pub(crate) fn process_starts(processes: &[u32]) -> Result<Vec<(u32, Option<u64>)>, Error> {
    let start = |pid| started(pid).map(|(_, start)| start);
    Ok(processes.iter().map(|pid| (*pid, start(*pid))).collect())
}

/// This process's resident memory in bytes; 0 where the system does not say.
pub(crate) fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Tells this run of the machine from others; `None` where the system does
/// not say.
pub(crate) fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .ok()
        .filter(|text| !text.is_empty())
}
