//! Finds the files that are unchanged, by their stats alone (FILE-5).

mod directories;

use std::fs::Metadata;
use std::path::Path;
use std::thread;

use touchmark_engine::Stamp;
use touchmark_proto::RelPath;

use crate::system::stat::MetadataExt as _;

use super::vouch::Vouching;
use directories::Directories;

const SECOND: i64 = 1_000_000_000;

/// The number of files for each thread at least: one thread is fast enough for
/// fewer.
const FEW: usize = 1_024;

/// The most threads. More would block each other.
const THREADS: usize = 4;

/// Returns the paths that may have another content than when they had these
/// stats, or that resolve in another way now, in their order.
pub(super) fn differing(
    root: &Path,
    vouching: &Vouching,
    files: Vec<(RelPath, Stamp)>,
) -> Vec<RelPath> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = files.len().div_ceil(threads.min(THREADS)).max(FEW);
    let mut parts: Vec<&[(RelPath, Stamp)]> = files.chunks(part).collect();
    let Some(own) = parts.pop() else {
        return Vec::new();
    };
    thread::scope(|scope| {
        let others = parts.into_iter().map(|part| {
            let thread = thread::Builder::new().name("compare".into());
            let thread = thread.spawn_scoped(scope, || differing_among(root, vouching, part));
            (part, thread)
        });
        let others: Vec<_> = others.collect();
        let last = differing_among(root, vouching, own);
        let mut differ = Vec::new();
        for (part, thread) in others {
            // If no thread could be started, or it panicked, its files count as
            // changed.
            let found = thread.ok().and_then(|thread| thread.join().ok());
            match found {
                Some(found) => differ.extend(found),
                None => differ.extend(part.iter().map(|(path, _)| path.clone())),
            }
        }
        differ.extend(last);
        differ
    })
}

fn differing_among(root: &Path, vouching: &Vouching, files: &[(RelPath, Stamp)]) -> Vec<RelPath> {
    let mut directories = Directories::of(root, vouching);
    let differ = files
        .iter()
        .filter(|(path, stamp)| !directories.holds(path, stamp));
    differ.map(|(path, _)| path.clone()).collect()
}

/// Returns the parts of a stat that identify it, without the mount.
pub(super) fn stamp(metadata: &Metadata) -> Stamp {
    Stamp {
        inode: metadata.ino(),
        size: metadata.len(),
        modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        device: metadata.dev(),
        mount: 0,
    }
}

pub(super) fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn rel(path: &str) -> RelPath {
        RelPath::new(path.as_bytes()).unwrap()
    }

    #[test]
    fn what_was_written_replaced_linked_or_removed_differs_and_nothing_else() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        let names = [
            "a", "d/b", "d/c", "d/e/f", "gone", "linked", "moved", "other", "same/x", "replaced",
        ];
        for directory in ["d/e", "same"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for name in names {
            fs::write(root.join(name), name).unwrap();
        }
        let stamps = || -> Vec<(RelPath, Stamp)> {
            let stamp = |name| stamp(&fs::metadata(root.join(name)).unwrap());
            names.iter().map(|name| (rel(name), stamp(*name))).collect()
        };
        let before = stamps();
        assert_eq!(differing(&root, &Vouching::new(&root), before.clone()), []);

        fs::remove_file(root.join("gone")).unwrap();
        fs::hard_link(root.join("linked"), root.join("second")).unwrap();
        fs::write(root.join("d/c"), "other").unwrap();
        fs::rename(root.join("moved"), root.join("d/moved")).unwrap();
        symlink("d/moved", root.join("moved")).unwrap();
        fs::write(root.join("new"), "replaced").unwrap();
        fs::rename(root.join("new"), root.join("replaced")).unwrap();
        // The same file by another path.
        fs::rename(root.join("same"), root.join("renamed")).unwrap();
        symlink("renamed", root.join("same")).unwrap();
        let mut differ = differing(&root, &Vouching::new(&root), before);
        differ.sort();
        let expected = ["d/c", "gone", "linked", "moved", "replaced", "same/x"];
        assert_eq!(differ, expected.map(rel));
    }

    #[test]
    fn many_are_compared_side_by_side_and_told_in_their_order() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        let names: Vec<RelPath> = (0..FEW * 5 / 2).map(|n| rel(&format!("{n:05}"))).collect();
        let at = |name: &RelPath| root.join(name.to_string());
        let mut files = Vec::new();
        for name in &names {
            fs::write(at(name), "").unwrap();
            files.push((name.clone(), stamp(&fs::metadata(at(name)).unwrap())));
        }
        let gone: Vec<RelPath> = names.into_iter().step_by(FEW / 2).collect();
        for name in &gone {
            fs::remove_file(at(name)).unwrap();
        }
        assert_eq!(differing(&root, &Vouching::new(&root), files), gone);
    }
}
