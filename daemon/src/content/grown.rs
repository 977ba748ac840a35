//! Large files that only grow, such as logs. Each is hashed from where the last
//! hash stopped (LOSS-4).

use std::fs::{File, Metadata};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use touchmark_engine::Stamp;
use touchmark_proto::{Hash, RelPath};

/// The smallest size, in bytes, of a file whose progress is stored. Smaller
/// files are read quickly as a whole.
pub(super) const GROWS: u64 = 4 << 20;

/// The number of files whose progress is stored. The one that was not read for
/// longest is removed first.
const REMEMBERED: usize = 64;

/// The number of earlier lengths stored for each file, since the engine may
/// request the hashes of these prefixes.
const LENGTHS: usize = 32;

/// The number of blocks that are compared to find out whether a file only grew:
/// the first, the last, and others between them at equal distances.
const BLOCKS: u64 = 16;

const BLOCK: u64 = 4 << 10;

/// How far a file was hashed.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// The hash state of all bytes so far.
    pub hasher: Sha256,
    pub size: u64,
    /// The number of line feeds so far.
    pub line_feeds: u32,
    /// The last byte.
    pub last: u8,
    /// The lengths at which it was hashed, with their hashes.
    pub lengths: Vec<(u64, Hash)>,
    identity: (u64, u64),
    blocks: [u8; 32],
}

/// The progress of large files, shared by all readers.
#[derive(Clone, Debug, Default)]
pub(super) struct Grown(Arc<Mutex<Vec<(RelPath, Progress)>>>);

impl Grown {
    /// Returns how far a file was hashed, if it seems to have grown since then
    /// and not to have changed otherwise.
    pub(super) fn of(&self, path: &RelPath, file: &File, now: &Metadata) -> Option<Progress> {
        let stamp = super::stamp(now);
        if stamp.size < GROWS {
            return None;
        }
        let progress = {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (_, progress) = known.iter().find(|(known, _)| known == path)?;
            progress.clone()
        };
        let same = progress.identity == (stamp.device, stamp.inode)
            && progress.size < stamp.size
            && blocks(file, progress.size) == Some(progress.blocks);
        same.then_some(progress)
    }

    /// Returns whether no progress of a file is stored. The next read then
    /// starts from its beginning.
    pub(super) fn is_unknown(&self, path: &RelPath) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().all(|(known, _)| known != path)
    }

    /// Stores that a file was hashed up to this size. `lengths` are the lengths
    /// stored before.
    pub(super) fn note(
        &self,
        path: &RelPath,
        file: &File,
        stamp: &Stamp,
        read: &super::Hashed,
        size: u64,
        mut lengths: Vec<(u64, Hash)>,
    ) {
        let Some(blocks) = (size >= GROWS).then(|| blocks(file, size)).flatten() else {
            return;
        };
        lengths.push((size, read.hash));
        let superfluous = lengths.len().saturating_sub(LENGTHS);
        lengths.drain(..superfluous);
        let progress = Progress {
            hasher: read.hasher.clone(),
            size,
            line_feeds: read.line_feeds,
            last: read.last,
            lengths,
            identity: (stamp.device, stamp.inode),
            blocks,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known != path);
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((path.clone(), progress));
    }
}

/// Returns the hash of some blocks of the first `size` bytes. Changes the
/// file's position.
fn blocks(mut file: &File, size: u64) -> Option<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut block = [0; BLOCK as usize];
    for number in 0..BLOCKS {
        let at = (size - BLOCK) / (BLOCKS - 1) * number;
        let at = if number == BLOCKS - 1 {
            size - BLOCK
        } else {
            at
        };
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut block).ok()?;
        hasher.update(block);
    }
    Some(hasher.finalize().into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use touchmark_engine::patterns::Patterns;

    use crate::content::{MAX_BYTES, Reader};
    use touchmark_engine::{Content, Found, ReadOrder};

    fn order(prefixes: &[u64], whole: bool) -> ReadOrder {
        ReadOrder {
            path: RelPath::new(b"log").unwrap(),
            ticket: 1,
            prefixes: prefixes.to_vec(),
            bytes: false,
            keep: true,
            whole,
        }
    }

    fn reader(root: &Path) -> Reader {
        Reader::new(root, Patterns::new([]).unwrap(), 1 << 20, MAX_BYTES)
    }

    fn content(reader: &Reader, prefixes: &[u64], whole: bool) -> (Content, Vec<(u64, Hash)>) {
        let report = reader.read(&order(prefixes, whole));
        match report.outcome.found {
            Found::File(content) => (content, report.outcome.prefixes),
            other => panic!("{other:?}"),
        }
    }

    fn truth(bytes: &[u8]) -> (Hash, u32) {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').count();
        (
            Hash(Sha256::digest(bytes).into()),
            u32::try_from(lines).unwrap(),
        )
    }

    #[test]
    fn what_was_appended_is_hashed_and_the_whole_is_told() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("log");
        let reader = reader(world.path());
        let mut bytes: Vec<u8> = (0..GROWS).map(|n| (n * n % 251) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let first = content(&reader, &[], false).0;
        assert_eq!((first.hash, first.lines), truth(&bytes));
        for line in ["a line\n", "half a ", "line\nand\n", "more"] {
            let before = bytes.len() as u64;
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            file.write_all(line.as_bytes()).unwrap();
            bytes.extend_from_slice(line.as_bytes());
            // Hashes of earlier lengths are stored; for any other the file is
            // read whole.
            for prefixes in [vec![GROWS, before], vec![5]] {
                let (found, hashed) = content(&reader, &prefixes, false);
                assert_eq!((found.hash, found.lines), truth(&bytes));
                let wanted: BTreeSet<u64> = prefixes.into_iter().collect();
                assert_eq!(hashed.len(), wanted.len());
                for (length, hash) in hashed {
                    assert_eq!(hash, truth(&bytes[..length as usize]).0, "{length}");
                }
            }
        }
    }

    #[test]
    fn what_changed_in_a_looked_at_place_or_shrank_is_read_whole() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("log");
        let reader = reader(world.path());
        let mut bytes = vec![b'x'; GROWS as usize];
        fs::write(&path, &bytes).unwrap();
        content(&reader, &[], false);
        // The first block and the last one changed, in a file that grew.
        for at in [0, bytes.len() - 1] {
            bytes[at] = b'y';
            bytes.push(b'z');
            fs::write(&path, &bytes).unwrap();
            assert_eq!(content(&reader, &[], false).0.hash, truth(&bytes).0);
        }
        bytes[70_000] = b'y';
        bytes.push(b'z');
        fs::write(world.path().join("new"), &bytes).unwrap();
        fs::rename(world.path().join("new"), &path).unwrap();
        assert_eq!(content(&reader, &[], false).0.hash, truth(&bytes).0);
        bytes.truncate(GROWS as usize - 7);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(content(&reader, &[], false).0.hash, truth(&bytes).0);
    }

    #[test]
    fn a_change_between_the_blocks_is_found_by_a_read_of_the_whole() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("log");
        let reader = reader(world.path());
        let mut bytes = vec![b'x'; GROWS as usize];
        fs::write(&path, &bytes).unwrap();
        content(&reader, &[], false);
        bytes[10_000] = b'y';
        bytes.push(b'z');
        fs::write(&path, &bytes).unwrap();
        assert_eq!(content(&reader, &[], true).0.hash, truth(&bytes).0);
    }
}
