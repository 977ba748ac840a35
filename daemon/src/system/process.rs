//! This process as a whole, and what another one is named by.

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit, test_kill_process};

/// A process, told from a later one of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// When the system started it, in ticks since its boot.
    pub(crate) start: u64,
}

/// A process, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Which.
    pub(crate) process: Process,
    /// Its parent.
    pub(crate) parent: u32,
    /// The session of the system's that it is in, by its leader's number.
    pub(crate) session: u32,
}

/// A process's file mode creation mask: the permissions that its new files do
/// not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umask(pub u32);

/// Leaves the starter's terminal and directory (LIFE-1): a working directory
/// inside the workspace would keep its removal from being seen. From here on
/// a crash leaves no core file, and new files are the user's alone, unless made otherwise; returned is the mask
/// of before.
pub(crate) fn detach(on_demand: bool) -> Umask {
    if on_demand {
        // Fails where the starter has made this a session leader already.
        let _is_leader = rustix::process::setsid();
    }
    let _stays = std::env::set_current_dir("/");
    // A dump would hold contents of files. Fails nowhere: it lowers a limit.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _lowered = setrlimit(Resource::Core, none);
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // As wide as macOS has it, this type is narrower.
    #[allow(clippy::useless_conversion)]
    Umask(before.as_raw_mode().into())
}

/// Whether a process of that number lives. Its number may be another's by
/// now.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

/// The most open descriptors that may be allowed; `None` for no limit.
pub(crate) fn most_descriptors() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Allows that many open descriptors, or as many as the system does.
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

/// Ends as by `kill -9`.
#[cfg(any(debug_assertions, feature = "crash-points"))]
pub(crate) fn die() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ends_here = kill_process(getpid(), Signal::KILL);
    // The signal may reach another thread first.
    loop {
        std::thread::park();
    }
}
