//! A look at the tree's processes: who holds a file open for writing.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::proc_stat::stat;

use rustix::fs::{Mode, OFlags, open};
use std::os::fd::AsFd as _;

/// Whether a file is open for writing or mapped so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// No process of the tree holds it.
    No,
    /// This process does.
    By(u32),
    /// No process was seen to hold it, but one of the tree could not be read.
    Unknown,
}

/// Looks for processes of a tree that hold files open for writing, or mapped
/// writable and shared.
///
/// `ancestors` are the processes whose descendants are the tree: those of the
/// last [`Holders`](crate::Record::Holders) record. `files` are device and
/// inode, the device as in [`Identity`](crate::Identity). Returns one answer for
/// each file, in their order. A process that starts or exits during the look
/// may be missed.
pub fn holders(ancestors: &[u32], files: &[(u64, u64)]) -> Vec<Held> {
    let mut held = vec![Held::No; files.len()];
    let Some(tree) = descendants(ancestors) else {
        return vec![Held::Unknown; files.len()];
    };
    let mut places: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        places.entry(*file).or_default().push(at);
    }
    for pid in tree {
        let is_read = open_files(pid, &places, &mut held).is_some()
            && mappings(pid, &places, &mut held).is_some();
        // One that has exited holds nothing.
        if !is_read && is_running(pid) {
            for one in held.iter_mut().filter(|one| **one == Held::No) {
                *one = Held::Unknown;
            }
        }
    }
    held
}

/// Returns the processes below these, without them. `None` if `/proc` cannot be
/// read.
fn descendants(ancestors: &[u32]) -> Option<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").ok()? {
        let name = entry.ok()?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut seen: HashSet<u32> = ancestors.iter().copied().collect();
    let mut next: Vec<u32> = ancestors.to_vec();
    let mut found = Vec::new();
    while let Some(pid) = next.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    Some(found)
}

fn of(pid: u32) -> Option<crate::proc_stat::Stat> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open(format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
    stat(directory.as_fd()).ok()
}

fn parent(pid: u32) -> Option<u32> {
    of(pid).map(|stat| stat.parent)
}

fn is_running(pid: u32) -> bool {
    of(pid).is_some_and(|stat| !matches!(stat.state, b'Z' | b'X'))
}

/// Returns the flags of an open descriptor, as in `open`; `None` if unknown.
pub(crate) fn flags(process: &str, descriptor: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(flags.trim(), 8).ok()
}

/// Finds the files among a process's descriptors. `None` if it cannot be read.
fn open_files(pid: u32, places: &HashMap<(u64, u64), Vec<usize>>, held: &mut [Held]) -> Option<()> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).ok()? {
        let entry = entry.ok()?;
        let Ok(meta) = fs::metadata(entry.path()) else {
            continue;
        };
        let device = u64::from(rustix::fs::major(meta.dev())) << 32
            | u64::from(rustix::fs::minor(meta.dev()));
        let Some(at) = places.get(&(device, meta.ino())) else {
            continue;
        };
        let name = entry.file_name();
        let Some(flags) = flags(&pid.to_string(), &name.to_string_lossy()) else {
            continue;
        };
        let is_path = flags & libc::O_PATH as u32 != 0;
        if !is_path && flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32 {
            for at in at {
                held[*at] = Held::By(pid);
            }
        }
    }
    Some(())
}

/// Finds the files among a process's mappings that are shared and may be
/// written. `None` if it cannot be read.
fn mappings(pid: u32, places: &HashMap<(u64, u64), Vec<usize>>, held: &mut [Held]) -> Option<()> {
    let text = fs::read(format!("/proc/{pid}/maps")).ok()?;
    for line in text.split(|byte| *byte == b'\n') {
        let Some((device, inode)) = mapped(line) else {
            continue;
        };
        for ((of, number), at) in places {
            // Some file systems show another device here than `stat` does.
            if *number != inode || (*of != device && device >> 32 != 0) {
                continue;
            }
            let is_same = *of == device;
            for at in at {
                match (is_same, held[*at]) {
                    (true, _) => held[*at] = Held::By(pid),
                    (false, Held::No) => held[*at] = Held::Unknown,
                    _ => {}
                }
            }
        }
    }
    Some(())
}

/// Returns device and inode of a line of `maps`, if what it maps is a file that
/// is written through it. A mapping that may become writable counts: its
/// descriptor need not be open any more.
fn mapped(line: &[u8]) -> Option<(u64, u64)> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.split_ascii_whitespace();
    let permissions = fields.nth(1)?.as_bytes();
    let device = fields.nth(1)?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let (major, minor) = device.split_once(':')?;
    let major = u64::from_str_radix(major, 16).ok()?;
    let minor = u64::from_str_radix(minor, 16).ok()?;
    let is_written = permissions.get(1) == Some(&b'w') && permissions.get(3) == Some(&b's');
    (is_written && inode != 0).then_some((major << 32 | minor, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_writable_mappings_count() {
        let line = |permissions: &str| {
            let line = format!("7f0-7f1 {permissions} 00000000 08:1f 77   /a b");
            mapped(line.as_bytes())
        };
        assert_eq!(line("rw-s"), Some((8 << 32 | 0x1f, 77)));
        assert_eq!(line("rw-p"), None);
        assert_eq!(line("r--s"), None);
        assert_eq!(mapped(b""), None);
        assert_eq!(mapped(b"7f0-7f1 rw-s 00000000 00:00 0"), None);
    }
}
