//! The record of the workspace's files at the last sweep.

use std::collections::HashMap;
use std::sync::Arc;

use touchmark_engine::Held;
use touchmark_proto::{FileMode, Millis};

use super::rules::Rules;
use crate::git::index::ObjectId;
use crate::system::stat as tell;

const SECOND: i64 = 1_000_000_000;

/// A stat whose time is closer to the sweep than this, in nanoseconds, may stay
/// the same while the content changes: file systems take times from the
/// system's tick. [`COARSE`] is for file systems that count whole seconds, of
/// which FAT counts pairs.
const TICK: i64 = 20_000_000;
const COARSE: i64 = 2 * SECOND;

/// Directories by their relative paths. That of the workspace is empty.
pub(super) type Index = HashMap<Vec<u8>, Directory>;

/// A directory.
pub(super) struct Directory {
    /// Its own times, if they prove that its names are unchanged.
    pub(super) stamp: Option<(i64, i64)>,
    pub(super) rules: Arc<Rules>,
    /// When it was looked into last, in nanoseconds since 1970.
    pub(super) looked: i64,
    /// The stat of the ignore file from which `rules` were read.
    pub(super) rules_from: Option<Stat>,
    /// It contains a `.git`.
    pub(super) is_top: bool,
    /// Sorted by name.
    pub(super) entries: Vec<(Box<[u8]>, Entry)>,
}

/// The entry at a name.
pub(super) enum Entry {
    /// A regular file, or a symlink.
    File(File),
    Directory {
        /// All files below are ignored, except those in git's index.
        ignored: bool,
    },
    /// Not looked at: ignored, or no file.
    Passed(Kind),
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
    Directory,
    Other,
}

/// A regular file, or a symlink.
#[derive(Clone, Copy)]
pub(super) struct File {
    pub(super) stat: Stat,
    /// It is ignored, and in git's index.
    pub(super) ignored: bool,
    pub(super) known: Known,
}

/// What is on record about a file's content.
#[derive(Clone, Copy)]
pub(super) enum Known {
    /// The content is not on record.
    Nothing,
    /// Git's index proves that it is the content of this blob.
    Blob(ObjectId),
    /// The content, which was read.
    Held(Held),
}

/// The parts of a stat that distinguish two states of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) inode: u64,
    pub(super) size: u64,
    /// In nanoseconds since 1970.
    pub(super) modified: i64,
    pub(super) changed: i64,
    pub(super) mode: Option<FileMode>,
}

impl Directory {
    /// Returns whether there is an entry of this name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }

    /// Returns where in `entries` the entry of this name is.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        { &self.entries }
            .binary_search_by(|(own, _)| (**own).cmp(name))
            .ok()
    }
}

impl File {
    pub(super) fn kind(&self) -> Kind {
        match self.stat.is_link() {
            true => Kind::Link,
            false => Kind::File,
        }
    }
}

impl Stat {
    pub(super) fn of(found: &rustix::fs::Stat) -> Self {
        let (modified, changed) = tell::times(found);
        Self {
            inode: tell::inode(found),
            size: tell::size(found),
            modified,
            changed,
            mode: tell::mode(found),
        }
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode.is_some_and(FileMode::is_link)
    }

    /// Returns whether its times prove that the content at that moment is
    /// unchanged since.
    pub(super) fn is_settled(&self, moment: i64) -> bool {
        settled((self.modified, self.changed), moment)
    }
}

/// Returns a file's time, which is in nanoseconds, in milliseconds; `None` if it
/// is before 1970.
pub(super) fn milliseconds(time: i64) -> Option<Millis> {
    u64::try_from(time / 1_000_000).ok()
}

/// Returns whether times were old enough at that moment.
pub(super) fn settled((modified, changed): (i64, i64), moment: i64) -> bool {
    let coarse = changed % SECOND == 0;
    let horizon = if coarse { COARSE } else { TICK };
    modified.max(changed).saturating_add(horizon) < moment
}
