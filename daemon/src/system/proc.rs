//! What Linux tells of processes and of itself.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use touchmark_proto::Error;

use crate::system::process::{Placed, Process, Umask};

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
    let placed = placed(pid)?;
    Some((placed.parent, placed.process.start))
}

/// Where a process belongs (proc(5), `stat`); `None` if there is none.
fn placed(pid: u32) -> Option<Placed> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    // A zombie has ended; its parent has not waited for it yet.
    let ended = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    (!ended).then_some(Placed {
        process: Process { pid, start },
        parent,
        session,
    })
}

/// The processes that a process has started and that go on.
pub(crate) fn children(pid: u32) -> Vec<Placed> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let mut found = Vec::new();
    for list in lists {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(pids.filter_map(placed));
    }
    found
}

/// All processes that can be seen from here.
pub(crate) fn all() -> Vec<Placed> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(placed).collect()
}

/// Whether a process runs the program that this one runs.
pub(crate) fn runs_this_program(pid: u32) -> bool {
    // The file itself: its name may be another's by now.
    let program = |pid: &str| {
        let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    };
    program(&pid.to_string()).is_some_and(|its| Some(its) == program("self"))
}

/// Whether a variable of a process's environment has this value; not told of
/// other users' processes.
pub(crate) fn environment_says(pid: u32, value: &str) -> bool {
    let read = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut all = read();
    // It is empty for the moment in which another program takes its place.
    for _ in 0..5 {
        if !all.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
        all = read();
    }
    let mut variables = all.split(|byte| *byte == 0);
    variables.any(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=');
        equals.and_then(|at| variable.get(at + 1..)) == Some(value.as_bytes())
    })
}

/// Ticks in a second.
fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// How long the system had been running at that tick.
pub(crate) fn since(tick: u64) -> Duration {
    Duration::from_millis(tick.saturating_mul(1_000) / ticks_per_second())
}

/// In which tick the system had been running for so long.
pub(crate) fn ticks(running: Duration) -> u64 {
    let millis = u64::try_from(running.as_millis()).unwrap_or(u64::MAX);
    millis.saturating_mul(ticks_per_second()) / 1_000
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
