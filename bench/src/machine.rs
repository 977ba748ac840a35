//! What it was measured on.

use std::path::Path;
use std::{env, fs};

/// The machine and the build in a line.
pub(crate) fn line() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| {
            let (_, name) = line.strip_prefix("model name")?.split_once(": ")?;
            Some(name.to_owned())
        })
        .unwrap_or_else(|| env::consts::ARCH.into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let profile = if cfg!(debug_assertions) {
        "; UNOPTIMISED BUILD"
    } else {
        ""
    };
    format!(
        "touchmark {}{profile}; {processor}, {cores} cores, Linux {}; load {} before",
        env!("CARGO_PKG_VERSION"),
        read("/proc/sys/kernel/osrelease").trim(),
        // Asked first by whoever measures.
        load(),
    )
}

/// Processes that wanted a processor, in the last minute.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("?").to_owned()
}

/// Where the measured files are, and where sockets are.
pub(crate) fn file_systems() -> String {
    format!(
        "workspaces and state on {}, sockets on {}",
        file_system(&env::temp_dir()),
        file_system(Path::new("/dev/shm"))
    )
}

/// The kind of the file system that holds a path.
fn file_system(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let holding = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        path.starts_with(place).then_some((place.len(), kind))
    });
    // The later of two mounts on one place is the one that is seen.
    let kind = holding.max_by_key(|(length, _)| *length);
    kind.map_or("?".into(), |(_, kind)| kind.to_owned())
}
