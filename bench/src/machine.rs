//! The description of the machine on which the bench ran.

use std::path::Path;
use std::{env, fs};

/// Returns one line that describes the machine and the build.
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
        // The caller builds this line before it measures, so this is the load
        // before the bench.
        load(),
    )
}

/// Returns the average number of runnable processes in the last minute.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or("?").to_owned()
}

/// Returns a line with the file systems of the measured files and of the
/// sockets.
pub(crate) fn file_systems() -> String {
    format!(
        "workspaces and state on {}, sockets on {}",
        file_system(&env::temp_dir()),
        file_system(Path::new("/dev/shm"))
    )
}

/// Returns the type of the file system that contains a path.
fn file_system(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let holding = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        path.starts_with(place).then_some((place.len(), kind))
    });
    // Of two mounts on the same place, the later one is visible.
    let kind = holding.max_by_key(|(length, _)| *length);
    kind.map_or("?".into(), |(_, kind)| kind.to_owned())
}
