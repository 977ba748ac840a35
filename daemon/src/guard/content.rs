//! The current content of an open file.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use sha2::{Digest as _, Sha256};
use touchmark_proto::Hash;

/// The parts of a stat that change when a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: (i64, i64),
}

pub(super) fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok(Stamp {
        size: metadata.len(),
        // Not the change time, since a rename changes that.
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    })
}

/// Returns the hash of a file's content; `None` if it was written meanwhile.
/// The file's offset stays.
pub(super) fn hash(file: &File) -> io::Result<Option<(Hash, Stamp)>> {
    let before = stamp(file)?;
    let mut hasher = Sha256::new();
    let mut size = 0_u64;
    each(file, |data| {
        hasher.update(data);
        size += data.len() as u64;
    })?;
    let same = size == before.size && stamp(file)? == before;
    Ok(same.then(|| (Hash(hasher.finalize().into()), before)))
}

/// Returns the whole content of a file.
pub(super) fn bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    each(file, |data| bytes.extend_from_slice(data))?;
    Ok(bytes)
}

fn each(file: &File, mut see: impl FnMut(&[u8])) -> io::Result<()> {
    let mut chunk = [0; 16 << 10];
    let mut at = 0_u64;
    loop {
        match file.read_at(&mut chunk, at) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                see(chunk.get(..count).unwrap_or_default());
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
