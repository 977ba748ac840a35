//! What a session has on record of one content, and of one read or edit.

use crate::ranges::RangeSet;
use touchmark_proto::files::Source;
use touchmark_proto::{Hash, Millis};

/// A content, some lines of which entered a session's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The content; `None` if the session removed the file.
    pub hash: Option<Hash>,
    /// The lines of it that were shown or written, except those for which
    /// another content was shown since.
    pub ranges: RangeSet,
    /// The lines of `ranges` that were shown and are still in the context.
    pub resident: RangeSet,
    /// The session did not name the hash.
    pub assumed: bool,
    /// The content was read by the session; else the session wrote it.
    pub read: bool,
    /// The session wrote the content, and its context was not cut since. So
    /// lines that it was not shown are on record too.
    pub written: bool,
    /// The lines were shown of an older content, and are unchanged in this one,
    /// perhaps at other numbers (SEEN-8). They are on record, but a read of
    /// them is not a repeat.
    pub moved: bool,
}

impl Seen {
    /// Returns the lines of this content that the session has on record.
    pub(super) fn believed(&self) -> &RangeSet {
        match self.written {
            true => &self.ranges,
            false => &self.resident,
        }
    }

    pub(super) fn forget(&mut self, ranges: &RangeSet) {
        self.ranges = self.ranges.minus(ranges);
        self.resident = self.resident.minus(ranges);
    }
}

/// A record of how the file came into the context. A newer one has superseded
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRecord {
    /// How the file came into the context.
    pub source: Source,
    /// The agent's step; `None` if it named none.
    pub step: Option<u64>,
    /// When the file came into the context.
    pub time: Millis,
    /// The number of lines of the content.
    pub lines: u32,
    /// The content; `None` for no file.
    pub hash: Option<Hash>,
}
