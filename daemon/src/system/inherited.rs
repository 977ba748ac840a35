//! What a process inherits from its starter and a daemon that serves all
//! clients should not have: a low priority, few processors, small limits, and
//! the first place when memory is short.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The file with the process's rank when memory is short: the process with the
/// highest number is killed first.
const RANK: &str = "/proc/self/oom_score_adj";

/// The limits that are raised, with what each limits, for people.
const LIMITS: [(Resource, &str); 4] = [
    (Resource::Fsize, "bytes in a file (`ulimit -f`)"),
    (Resource::As, "bytes of address space (`ulimit -v`)"),
    (Resource::Data, "bytes of data (`ulimit -d`)"),
    (Resource::Cpu, "seconds of processor time (`ulimit -t`)"),
];

/// Takes back what this process has inherited from its starter, as far as the
/// system lets it. Returns what remains, a sentence each, for people. Call it
/// before there are other threads: priority and processors are a thread's.
pub(crate) fn leave() -> Vec<String> {
    let mut left = Vec::new();
    for (resource, limits) in LIMITS {
        let limit = getrlimit(resource);
        let raised = Rlimit {
            current: limit.maximum,
            ..limit
        };
        // The system always allows raising a limit to its maximum.
        let _raised = setrlimit(resource, raised);
        left.extend(limit.maximum.map(|most| format!("at most {most} {limits}")));
    }
    if let Ok(nice) = rustix::process::getpriority_process(None)
        && nice > 0
        && rustix::process::setpriority_process(None, 0).is_err()
    {
        left.push(format!("a low priority (nice {nice})"));
    }
    if let Ok(before) = sched_getaffinity(None) {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|number| all.set(number));
        if sched_setaffinity(None, &all).is_err() {
            left.push(format!("{} processors", before.count()));
        }
    }
    let rank = fs::read_to_string(RANK).unwrap_or_default();
    if rank.trim() != "0" && fs::write(RANK, "0").is_err() {
        left.push(format!("a rank when memory is short of {}", rank.trim()));
    }
    left
}
