//! What is known of the workspace's files since they were looked at last.

use std::collections::HashMap;
use std::sync::Arc;

use gix_index::hash::ObjectId;
use touchmark_engine::Held;
use touchmark_proto::FileMode;

use super::rules::Rules;

const SECOND: i64 = 1_000_000_000;

/// Nearer to the look than this, a stat may stay the same while the content
/// changes: file systems stamp by the system's tick. One that counts whole
/// seconds is FAT, at worst, which counts pairs.
const TICK: i64 = 20_000_000;
const COARSE: i64 = 2 * SECOND;

/// Directories by their relative names; the workspace's own is empty.
pub(super) type Index = HashMap<Vec<u8>, Directory>;

/// A directory.
pub(super) struct Directory {
    /// Its own times, where they vouch for the names in it.
    pub(super) stamp: Option<(i64, i64)>,
    pub(super) rules: Arc<Rules>,
    /// The ignore file that those were read from.
    pub(super) rules_from: Option<Stat>,
    /// It has a `.git`.
    pub(super) is_top: bool,
    /// In the order of their names.
    pub(super) entries: Vec<(Box<[u8]>, Entry)>,
}

/// What stands under a name.
pub(super) enum Entry {
    /// A regular file, or a symlink.
    File(File),
    Directory {
        /// All below is ignored but what git's index has.
        ignored: bool,
    },
    /// It is left alone: ignored, or no file.
    Passed(Kind),
}

/// What kind of thing stands under a name.
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
    /// It is ignored, but git's index has it.
    pub(super) ignored: bool,
    pub(super) known: Known,
}

/// What is known of a file's content.
#[derive(Clone, Copy)]
pub(super) enum Known {
    /// Nothing.
    Nothing,
    /// Git's index vouches that it is this blob's.
    Blob(ObjectId),
    /// It was read.
    Held(Held),
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) inode: u64,
    pub(super) size: u64,
    /// In nanoseconds since 1970.
    pub(super) modified: i64,
    pub(super) changed: i64,
    pub(super) mode: Option<FileMode>,
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
    pub(super) fn is_link(&self) -> bool {
        self.mode.is_some_and(FileMode::is_link)
    }

    /// When it was changed, in milliseconds.
    pub(super) fn changed_ms(&self) -> Option<u64> {
        u64::try_from(self.changed / 1_000_000).ok()
    }

    /// Whether its times vouch for what was there at that moment.
    pub(super) fn is_settled(&self, moment: i64) -> bool {
        settled((self.modified, self.changed), moment)
    }
}

/// Whether times lay far enough back at that moment.
pub(super) fn settled((modified, changed): (i64, i64), moment: i64) -> bool {
    let coarse = changed % SECOND == 0;
    let horizon = if coarse { COARSE } else { TICK };
    modified.max(changed).saturating_add(horizon) < moment
}
