//! This process as a whole, and the identity of other processes.

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit, test_kill_process};

/// A process, distinguished from later ones with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// The process id.
    pub(crate) pid: u32,
    /// When the system started it, in ticks since the system's boot.
    pub(crate) start: u64,
}

/// A process with its parent and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The process.
    pub(crate) process: Process,
    /// The id of its parent.
    pub(crate) parent: u32,
    /// The session of the operating system that it is in, by the leader's
    /// process id.
    pub(crate) session: u32,
}

/// A process's umask: the permissions that its new files do not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umask(pub u32);

/// Leaves the starter's terminal and working directory (LIFE-1): with a working
/// directory in the workspace, the removal of the workspace could not be
/// noticed. After this a crash writes no core file, and new files are private
/// to the user unless created otherwise. Returns the previous umask.
pub(crate) fn detach(on_demand: bool) -> Umask {
    if on_demand {
        // This fails if the starter has made this process a session leader
        // already.
        let _is_leader = rustix::process::setsid();
    }
    let _stays = std::env::set_current_dir("/");
    // A core dump would contain contents of files. The call cannot fail, since
    // it lowers a limit.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _lowered = setrlimit(Resource::Core, none);
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // On macOS this type is narrower.
    #[allow(clippy::useless_conversion)]
    Umask(before.as_raw_mode().into())
}

/// Returns whether a process of this id exists. It may be another one that got
/// the id since.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// Returns the maximum number of open descriptors; `None` for no limit.
pub(crate) fn most_descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the limit of open descriptors to `wanted`, or as far as the system
/// allows.
pub(crate) fn raise_descriptor_limit(wanted: u64) {
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

/// Ends this process as by `kill -9`.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn die() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ends_here = kill_process(getpid(), Signal::KILL);
    // The signal may reach another thread first.
    loop {
        std::thread::park();
    }
}
