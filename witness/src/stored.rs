//! The pack: a file beside the ring with the bytes that calls were about to
//! destroy. It is removed with the ring. What the reader has released is written
//! over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::checksum::{SEED, sum};
use crate::marks::Before;

/// The most bytes of one content.
pub(crate) const LARGEST: u64 = 1 << 20;

/// The size of a pack, in bytes.
pub(crate) const PACK: u64 = 128 << 20;

/// Returns the path of the pack next to a ring.
pub fn pack(ring: &Path) -> PathBuf {
    crate::ring::beside(ring, ".pack")
}

/// Reads a content out of a pack. `None` if it was not stored, or is not there
/// any more.
///
/// # Errors
/// The system's.
pub fn stored(pack: &File, before: &Before) -> io::Result<Option<Vec<u8>>> {
    let Some(stored) = before.stored.filter(|_| before.size <= LARGEST) else {
        return Ok(None);
    };
    let mut bytes = vec![0; before.size as usize];
    pack.read_exact_at(&mut bytes, stored.at % PACK)?;
    Ok((sum(SEED, &bytes) == stored.sum).then_some(bytes))
}
