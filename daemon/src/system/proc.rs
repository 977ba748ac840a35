//! What Linux reports of processes and of itself.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, prlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use touchmark_proto::Error;

use crate::system::process::{Placed, Process, Umask};

/// The name of the program that witnesses commands.
const WITNESS: &str = "touchmark-witness";

/// Waits until a process has ended; returns immediately if there is none. The
/// process is the one that has this id at the time of the call.
///
/// # Errors
/// If the system provides no descriptor for the process.
pub(crate) fn process_end(pid: u32) -> impl Future<Output = io::Result<()>> {
    let opened = open_process(pid);
    async move {
        if let Some(process) = opened? {
            // The descriptor is readable once the process has ended. The
            // function is deprecated for types that are no owned descriptors;
            // this type is one.
            #[allow(deprecated)]
            let process = AsyncFd::with_interest(process, Interest::READABLE)?;
            let _ended = process.readable().await?;
        }
        Ok(())
    }
}

/// Returns a descriptor of a process; `None` if there is no such process.
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

/// Limits how much memory a process may allocate, in bytes. Files that it maps
/// for reading do not count. Nothing is limited if the process has exited.
pub(crate) fn limit_memory(pid: u32, bytes: u64) {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _it_has_exited = prlimit(Some(pid), Resource::Data, limit);
    }
}

/// The maximum number of processes in a chain of ancestors.
const ABOVE: usize = 64;

/// Returns a process and its ancestors, without the system's first process;
/// empty if there is no such process.
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

/// Returns the parent of a process, and when the process was started, in ticks.
fn started(pid: u32) -> Option<(u32, u64)> {
    let placed = placed(pid)?;
    Some((placed.parent, placed.process.start))
}

/// Returns a process with its parent and session (proc(5), `stat`); `None` if
/// there is no such process.
pub(crate) fn placed(pid: u32) -> Option<Placed> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may contain anything, brackets too.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    // A zombie has ended; only its parent has not waited for it yet.
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

/// Returns the running child processes of a process.
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

/// Returns all processes that this process can see.
pub(crate) fn all() -> Vec<Placed> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(placed).collect()
}

/// Returns whether a process runs the same program as this one.
pub(crate) fn runs_this_program(pid: u32) -> bool {
    // The file is compared, since its name may belong to another file by now.
    let program = |pid: &str| {
        let file = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((file.dev(), file.ino()))
    };
    program(&pid.to_string()).is_some_and(|its| Some(its) == program("self"))
}

/// Returns whether a process only witnesses commands, or is about to end: it has
/// no program any more. A witness may be older than this program, and its file
/// replaced.
pub(crate) fn is_witness_or_ends(pid: u32) -> bool {
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(program) => program.file_name().is_some_and(|name| {
            let name = name.as_encoded_bytes();
            name.starts_with(WITNESS.as_bytes())
        }),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Returns the program and the arguments of a process; empty if there is no such
/// process.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    words
        .map(|word| word.into_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the value of a variable with which a process was started; `None` if it
/// had none, or if that is not readable.
pub(crate) fn variable(pid: u32, name: &str) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsStr::from_bytes(value).to_owned())
}

/// Returns the environment with which a process was started, as the system has
/// it: each variable ends with a null byte. Empty if the process belongs to
/// another user.
pub(crate) fn environment(pid: u32) -> Vec<u8> {
    let read = || fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut all = read();
    // The environment is empty for the moment in which the process executes
    // another program.
    for _ in 0..5 {
        if !all.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
        all = read();
    }
    all
}

/// Returns whether a variable of a process's environment has this value; false
/// if the process belongs to another user.
pub(crate) fn environment_says(pid: u32, value: &str) -> bool {
    let all = environment(pid);
    let mut variables = all.split(|byte| *byte == 0);
    variables.any(|variable| {
        let equals = variable.iter().position(|byte| *byte == b'=');
        equals.and_then(|at| variable.get(at + 1..)) == Some(value.as_bytes())
    })
}

/// Returns the number of ticks in a second.
fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Returns the system's uptime at a tick.
pub(crate) fn since(tick: u64) -> Duration {
    Duration::from_millis(tick.saturating_mul(1_000) / ticks_per_second())
}

/// Returns the tick at an uptime.
pub(crate) fn ticks(running: Duration) -> u64 {
    let millis = u64::try_from(running.as_millis()).unwrap_or(u64::MAX);
    millis.saturating_mul(ticks_per_second()) / 1_000
}

/// Returns a process's umask (proc(5), `Umask` of `status`); `None` if there is
/// no such process.
pub(crate) fn umask(pid: u32) -> Option<Umask> {
    let mask = status(pid, "Umask:")?;
    u32::from_str_radix(mask.trim(), 8).ok().map(Umask)
}

/// Returns the id of the process that has the id `pid` in the namespace of
/// another process, `to`. `None` if there is none, or if that namespace cannot
/// be told. If `to` has ended, it was in this namespace.
pub(crate) fn known_as(pid: u32, to: u32) -> Option<u32> {
    let namespace = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let depth = ids(to).map_or(1, |ids| ids.len());
    if depth == 1 {
        return Some(pid);
    }
    let theirs = namespace(to)?;
    let mut all = all().into_iter().map(|placed| placed.process.pid);
    all.find(|one| {
        ids(*one).is_some_and(|ids| ids.len() == depth && ids.last() == Some(&pid))
            && namespace(*one).as_ref() == Some(&theirs)
    })
}

/// Returns a process's ids in this namespace, and in each one below it that the
/// process is in (proc(5), `NSpid` of `status`).
fn ids(pid: u32) -> Option<Vec<u32>> {
    let ids = status(pid, "NSpid:")?;
    ids.split_whitespace().map(|id| id.parse().ok()).collect()
}

/// Returns the value of a field of a process's `status` (proc(5)).
fn status(pid: u32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut values = status.lines().filter_map(|line| line.strip_prefix(field));
    values.next().map(str::to_owned)
}

/// Returns when the system started each of these processes, in ticks since its
/// boot; `None` if there is no process of that id (proc(5), field 22 of
/// `stat`).
///
/// # Errors
/// None on Linux; see the counterpart for other systems.
pub(crate) fn process_starts(processes: &[u32]) -> Result<Vec<(u32, Option<u64>)>, Error> {
    let start = |pid| started(pid).map(|(_, start)| start);
    Ok(processes.iter().map(|pid| (*pid, start(*pid))).collect())
}

/// How much memory a process uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The resident memory.
    pub(crate) resident: u64,
    /// The part of it that is shared with no file.
    pub(crate) private: u64,
}

/// Returns this process's memory; zeros if the system does not report it
/// (proc(5), `statm`).
pub(crate) fn memory() -> Memory {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let page = rustix::param::page_size() as u64;
    let mut fields = text.split_whitespace().skip(1);
    let mut bytes = || Some(fields.next()?.parse::<u64>().ok()?.saturating_mul(page));
    let resident = bytes().unwrap_or_default();
    let shared = bytes().unwrap_or_default();
    Memory {
        resident,
        private: resident.saturating_sub(shared),
    }
}

/// Returns an id of this run of the machine; `None` if the system does not
/// report one.
pub(crate) fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .ok()
        .filter(|text| !text.is_empty())
}
