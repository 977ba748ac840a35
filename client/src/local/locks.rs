//! Finds the process that holds a lock, and its sockets, also where it runs in
//! another mount or process namespace (SEC-1).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns the process that holds a file's lock, by its number in this process's
/// namespace. `None` if no process holds it, or none that can be seen here.
pub(crate) fn holder(lock: &Path) -> Option<u32> {
    let inode = fs::symlink_metadata(lock).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| holder_in(line, inode))
}

/// Returns the holder that a line of `/proc/locks` names, if it is about a lock
/// of this inode: `1: FLOCK ADVISORY WRITE 254 08:01:1234 0 EOF`. File systems
/// with several devices show another device here than in `stat`.
fn holder_in(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let is_held = words.next()? == "FLOCK";
    let pid = words.nth(2)?.parse().ok()?;
    let (_, of) = words.next()?.rsplit_once(':')?;
    (is_held && of.parse() == Ok(inode)).then_some(pid)
}

/// Returns a path of this process to a file that another process has at `path`.
pub(crate) fn seen_by(pid: u32, path: &Path) -> Option<PathBuf> {
    let below = path.strip_prefix("/").ok()?;
    Some(
        Path::new("/proc")
            .join(pid.to_string())
            .join("root")
            .join(below),
    )
}

/// Returns whether a path leads through another process's root.
pub(crate) fn is_elsewhere(path: &Path) -> bool {
    path.starts_with("/proc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_holder_of_one_file() {
        let line = "1: FLOCK  ADVISORY  WRITE 254 08:01:1234 0 EOF";
        assert_eq!(holder_in(line, 1234), Some(254));
        assert_eq!(holder_in(line, 123), None);
        assert_eq!(
            holder_in("1: POSIX  ADVISORY  WRITE 254 08:01:1234 0 EOF", 1234),
            None
        );
        // Another process waits.
        assert_eq!(
            holder_in("1: -> FLOCK  ADVISORY  WRITE 9 08:01:1234 0 EOF", 1234),
            None
        );
        assert_eq!(holder_in("", 1), None);
    }
}
