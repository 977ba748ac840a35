//! What the watcher and a read find on the disk.

use std::sync::Arc;

use touchmark_proto::{FileMode, Hash, Millis, RelPath};

use crate::ledger::record::Held;

/// What the watcher saw on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Bytes were written or cut off. The writer has not closed the file yet.
    Written,
    /// A writer closed the file, or the content arrived by a rename.
    Closed,
    /// A write and its close, with no event in between. Most saves look like
    /// this.
    WrittenAndClosed,
    /// The name appeared: it was created or linked.
    Appeared,
    /// The name was removed, or renamed to a place that is not watched.
    Removed,
    /// Any other event, such as a change of attributes. The path is read, and
    /// the event has no other meaning.
    Touched,
}

/// The result of a read of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// What the path contains.
    pub found: Found,
    /// For each ordered length that is not larger than the file: the hash of
    /// that number of bytes from the file's beginning.
    pub prefixes: Vec<(u64, Hash)>,
    /// The bytes of the file; `None` if the order did not want them or there is
    /// no file.
    pub bytes: Option<Arc<[u8]>>,
    /// The content may not be kept (SEC-3).
    pub secret: bool,
    /// The real name, if symlinks are on the way to the path, also if there is
    /// no file. `None` without symlinks.
    pub real: Option<RelPath>,
    /// The target of the symlink at this name, as `readlink` returns it; `None`
    /// if the name is no symlink.
    pub link: Option<Arc<[u8]>>,
    /// The identity of the file, if it has several links (FILE-1).
    pub object: Option<Object>,
    /// Whether a process had the file open for writing after the read. The
    /// system reports its writes under the name by which it opened the file,
    /// and those through a memory map not at all (LOSS-2).
    pub open_for_writing: bool,
    /// How long the read took, if that was long, else 0. After a slow read, the
    /// next read that no request needs comes later (LOSS-4).
    pub took: Millis,
}

impl ReadOutcome {
    /// Returns the hash of the content, or `None` if no regular file was read.
    pub fn hash(&self) -> Option<Hash> {
        match &self.found {
            Found::File(content) => Some(content.hash),
            _ => None,
        }
    }
}

impl From<Found> for ReadOutcome {
    fn from(found: Found) -> Self {
        Self {
            found,
            prefixes: Vec::new(),
            bytes: None,
            secret: false,
            real: None,
            link: None,
            object: None,
            open_for_writing: false,
            took: 0,
        }
    }
}

/// The identity of a file, whatever its names. Another file may get the same
/// inode number once the last link was removed (ATTR-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// The device number of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

/// What a path contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No file, or a symlink to nothing.
    Absent,
    /// A regular file. Its stat was the same before and after the read.
    File(Content),
    /// A regular file that changed during every attempt to read it.
    Unstable {
        /// The file's size in bytes at the last attempt.
        size: u64,
    },
    /// The file could not be read.
    Unreadable {
        /// The system's error message.
        cause: String,
    },
    /// A directory, FIFO, device or socket. It was not opened.
    NotAFile {
        /// One of `directory`, `fifo`, `device`, `socket`.
        file_type: &'static str,
    },
    /// A symlink that leads out of the workspace (SEC-2).
    Outside,
}

/// The content of a regular file, with the stat of the time when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// SHA-256 of all bytes of the file.
    pub hash: Hash,
    /// The size in bytes.
    pub size: u64,
    /// The number of lines: of line feeds, and one more if the last line has
    /// none.
    pub lines: u32,
    /// The file's modification time, in milliseconds since 1970.
    pub mtime_ms: Millis,
    /// Its kind and permissions; `None` if they were not read.
    pub mode: Option<FileMode>,
    /// The user to whom it belongs, if that is another one than the daemon's.
    pub owner: Option<u32>,
    /// The stat, as far as it identifies a state of the file.
    pub stamp: Stamp,
    /// Whether the stat is enough to prove this content later (FILE-5): its
    /// times were so far in the past at the read that any later write changes
    /// them.
    pub settled: bool,
}

/// The part of a stat that distinguishes one state of a file from another.
/// Equal stamps mean that nothing was written in between, within the precision
/// of the file system's clock. They prove equal content only if the first was
/// settled (FILE-5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The modification time in nanoseconds since 1970.
    pub modified: i64,
    /// The change time in nanoseconds since 1970.
    pub changed: i64,
    /// The device number. Together with the inode number it identifies the
    /// file.
    pub device: u64,
    /// A number that distinguishes the mount from earlier mounts with the same
    /// device number; 0 where the device number is enough.
    pub mount: u64,
}

impl From<Content> for Held {
    fn from(content: Content) -> Self {
        Self {
            hash: Some(content.hash),
            size: content.size,
            lines: content.lines,
            mtime_ms: content.mtime_ms,
            mode: content.mode,
            owner: content.owner,
        }
    }
}
