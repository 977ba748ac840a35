//! The contents that an undo needs, in a file until the table has them,
//! so that they survive `kill -9` (KEEP-3).
//!
//! A record is the length of the content, its hash, and its bytes. Records are
//! appended without a sync, and removed all at once. Nothing depends on the
//! file: what cannot be written, or is damaged, is lost only if the daemon is
//! killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use touchmark_proto::Hash;

use crate::failpoint;
use crate::system::open::private_itself;

/// The bytes of a record before the content.
const HEADER: usize = 8 + 32;

/// The file, or none if nothing can be written or nothing may be stored.
#[derive(Default)]
pub(in super::super) struct Spool {
    file: Option<File>,
    /// The number of bytes that are records. There are none after it.
    length: u64,
}

impl Spool {
    /// Opens the file. With `keeps` false there is none afterwards.
    pub(in super::super) fn open(path: &Path, keeps: bool) -> Self {
        let file = match keeps {
            true => private_itself()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .map(Some),
            false => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            },
        };
        let file = file.unwrap_or_else(|error| {
            tracing::warn!(%error, "contents that wait are not written to a file");
            None
        });
        Self { file, length: 0 }
    }

    /// Passes on the contents that an earlier run left, oldest first. What
    /// follows the last whole record is removed.
    pub(in super::super) fn recover(&mut self, mut found: impl FnMut(Hash, Vec<u8>)) {
        let Some(file) = &self.file else {
            return;
        };
        let end = file.metadata().map_or(0, |found| found.len());
        while let Some(record) = Record::at(file, self.length, end) {
            let mut bytes = vec![0; record.size];
            let read = file.read_exact_at(&mut bytes, record.content);
            if read.is_ok() && Hash::of(&bytes) == record.hash {
                found(record.hash, bytes);
            }
            self.length = record.end();
        }
        self.cut(self.length);
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Appends a content, unless the file would have more than `most` bytes.
    pub(in super::super) fn add(&mut self, hash: &Hash, bytes: &[u8], most: u64) {
        let Some(file) = &self.file else {
            return;
        };
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        header[8..].copy_from_slice(&hash.0);
        let content = self.length + HEADER as u64;
        let end = content + bytes.len() as u64;
        if end > most {
            return;
        }
        failpoint::pass("store: about to spool a content");
        let written = file
            .write_all_at(&header, self.length)
            .and_then(|()| file.write_all_at(bytes, content));
        match written {
            Ok(()) => {
                self.length = end;
                failpoint::pass("store: a content is spooled");
            }
            Err(error) => {
                tracing::debug!(%error, "a content was not written to the spool");
                self.cut(self.length);
            }
        }
    }

    /// Overwrites a content.
    pub(in super::super) fn erase(&mut self, hash: &Hash) {
        let Some(file) = &self.file else {
            return;
        };
        let mut at = 0;
        while let Some(record) = Record::at(file, at, self.length) {
            let is_it = record.hash == *hash;
            if is_it
                && file
                    .write_all_at(&vec![0; record.size], record.content)
                    .is_err()
            {
                return self.clear();
            }
            at = record.end();
        }
    }

    /// Removes all contents.
    pub(super) fn clear(&mut self) {
        if self.length > 0 {
            failpoint::pass("store: about to empty the spool");
            self.cut(0);
        }
    }

    fn cut(&mut self, length: u64) {
        let cut = self.file.as_ref().map(|file| file.set_len(length));
        match cut {
            Some(Err(error)) => tracing::debug!(%error, "the spool was not shortened"),
            _ => self.length = length,
        }
    }
}

/// Where a content is in the file.
struct Record {
    hash: Hash,
    content: u64,
    size: usize,
}

impl Record {
    /// Returns the record at `at`, or `None` if there is no whole one before
    /// `end`. A loss of power may leave zeros, which are none.
    fn at(file: &File, at: u64, end: u64) -> Option<Self> {
        let content = at + HEADER as u64;
        let rest = end.checked_sub(content)?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, at).ok()?;
        let (size, hash) = header.split_first_chunk()?;
        let size = u64::from_le_bytes(*size);
        (size <= rest && hash != [0; 32]).then_some(Self {
            hash: Hash(hash.try_into().ok()?),
            content,
            size: usize::try_from(size).ok()?,
        })
    }

    fn end(&self) -> u64 {
        self.content + self.size as u64
    }
}
