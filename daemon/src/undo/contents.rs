//! The contents of an undo's files, in one file: to create one for each would
//! take longer than to write them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::system::open::private;

/// The file's name in the undo's directory.
const FILE: &str = "contents";

/// Where a content is: its offset and its length, in bytes.
pub(super) type Place = [u64; 2];

/// The file of contents, open for more of them.
#[derive(Debug)]
pub(super) struct Contents {
    file: File,
    /// Where the next content begins. What a full disk left after it counts for
    /// nothing, and is written over.
    pub(super) end: u64,
}

impl Contents {
    /// Opens the file of the undo with this directory.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = private();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(directory.join(FILE))?;
        let end = file.metadata()?.len();
        Ok(Self { file, end })
    }

    /// Adds a content. Returns where it is, and the bytes that are read back
    /// from there.
    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<(Place, Vec<u8>)> {
        let place = [self.end, bytes.len() as u64];
        self.file.write_all_at(bytes, self.end)?;
        self.end += place[1];
        Ok((place, at(&self.file, place)?))
    }

    /// Removes what was added after this length was reached.
    pub(super) fn cut(&mut self, end: u64) {
        self.end = end;
        if let Err(error) = self.file.set_len(end) {
            tracing::warn!("the contents of an undo: {error}");
        }
    }

    /// Waits until the contents are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Removes the contents of the undo with this directory.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    std::fs::remove_file(directory.join(FILE))
}

/// Reads a content of the undo with this directory.
pub(super) fn read(directory: &Path, place: Place) -> io::Result<Vec<u8>> {
    at(&File::open(directory.join(FILE))?, place)
}

fn at(file: &File, [offset, length]: Place) -> io::Result<Vec<u8>> {
    // The file's length is a limit for what a damaged entry says.
    let length = length.min(file.metadata()?.len());
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_a_full_disk_left_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let mut contents = Contents::open(directory.path()).unwrap();
        let (one, _) = contents.add(b"one").unwrap();
        // A part of a content that did not fit, which could not be removed.
        contents.file.write_all_at(b"tw", contents.end).unwrap();
        let (three, back) = contents.add(b"three").unwrap();
        assert_eq!(back, b"three");
        contents.cut(three[0]);
        let (four, _) = contents.add(b"four").unwrap();
        let mut again = Contents::open(directory.path()).unwrap();
        let (five, _) = again.add(b"five").unwrap();
        for (place, bytes) in [(one, &b"one"[..]), (four, b"four"), (five, b"five")] {
            assert_eq!(read(directory.path(), place).unwrap(), bytes);
        }
        assert!(read(directory.path(), [5, 9]).is_err());
    }
}
