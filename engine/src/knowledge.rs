//! What one session knows of one file (SEEN-1 to SEEN-4).

use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{Hash, LineRange, Millis, SessionId};

use crate::few;
use crate::ranges::RangeSet;
use crate::state::PathState;

/// Contents remembered per session and file. Older ones only matter for
/// "edited and reverted", and for lines still in the context.
const CONTENTS_KEPT: usize = 16;

/// Superseded records kept per session and file.
const RECORDS_KEPT: usize = 8;

/// A content that entered a session's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which; `None` where the session saw that there is no file.
    pub hash: Option<Hash>,
    /// Which of its lines were seen, but for those of which another content
    /// was read since.
    pub ranges: RangeSet,
    /// Which of them are still in the context.
    pub resident: RangeSet,
    /// The session did not name the hash.
    pub assumed: bool,
    /// It came by a read, not by the session's own write.
    pub read: bool,
}

/// A record of how the file came into the context, superseded by a newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastRecord {
    /// How it came.
    pub source: Source,
    /// The agent's step.
    pub step: Option<u64>,
    /// When.
    pub time: Millis,
    /// Lines of the content.
    pub lines: u32,
    /// The content.
    pub hash: Option<Hash>,
}

/// What one session knows of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// What the file held when the session began to hold it.
    pub baseline: Option<Hash>,
    /// Contents seen, the newest last.
    pub seen: Vec<Seen>,
    /// The last read could not be tied to a content (SEEN-1): the copy is
    /// stale until the next.
    pub uncertain: bool,
    /// The fact up to which the copy speaks: later versions are changes.
    pub at: u64,
    /// The copy speaks of a content that the daemon never saw.
    pub foreign: bool,
    /// The read that recorded a content other than the file's; 0 if the last
    /// read was of what the file held.
    pub behind: u64,
    /// The newest fact told to the session (MOD-1).
    pub told: u64,
    /// Reads since the last invalidation.
    pub read_count: u32,
    /// When it read last.
    pub read_at: Option<Millis>,
    /// When it wrote last.
    pub edit_at: Option<Millis>,
    /// A rename made this copy and nobody has named it yet (ATTR-12).
    pub copied: bool,
    /// The newest record of how the file came into the context.
    pub record: PastRecord,
    /// Older ones, the newest last.
    pub past: Vec<PastRecord>,
}

impl Knowledge {
    /// A path that begins to be held at fact `n` with that content.
    pub fn new(n: u64, baseline: Option<Hash>, record: PastRecord) -> Self {
        Self {
            baseline,
            seen: Vec::new(),
            uncertain: false,
            at: n,
            foreign: false,
            behind: 0,
            told: n,
            read_count: 0,
            read_at: None,
            edit_at: None,
            copied: false,
            record,
            past: Vec::new(),
        }
    }

    /// Whether the session has seen anything of the file.
    pub fn any(&self) -> bool {
        self.uncertain || !self.seen.is_empty()
    }

    /// The newest fact about the file that the session has to be told.
    pub fn newest(&self, session: &SessionId, path: &PathState) -> u64 {
        path.newest_for(session).max(self.behind)
    }

    /// What was seen of that content.
    pub fn of(&self, hash: Option<Hash>) -> Option<&Seen> {
        self.seen.iter().rev().find(|seen| seen.hash == hash)
    }

    /// The content seen last.
    pub fn last(&self) -> Option<&Seen> {
        self.seen.last().filter(|_| !self.uncertain)
    }

    /// Lines in the context that come from contents other than `hash` and
    /// were not seen again at `hash`.
    pub fn stale_ranges(&self, hash: Option<Hash>) -> RangeSet {
        let mut stale = RangeSet::default();
        for seen in self.seen.iter().filter(|seen| seen.hash != hash) {
            stale.add(&seen.resident);
        }
        match self.of(hash) {
            Some(current) => stale.minus(&current.ranges),
            None => stale,
        }
    }

    /// Whether `hash` is what the session may believe the file to hold
    /// (SEEN-2, `fresh`).
    pub fn is_fresh(&self, hash: Option<Hash>) -> bool {
        let seen = self.of(hash).is_some_and(|seen| !seen.ranges.is_empty());
        !self.uncertain && seen && self.stale_ranges(hash).is_empty()
    }

    /// What a read of those lines at that content is (SEEN-4).
    pub fn verdict(&self, hash: Option<Hash>, range: Option<LineRange>, lines: u32) -> Verdict {
        if self.uncertain && self.read_count > 0 {
            return Verdict::Changed;
        }
        let wanted = RangeSet::of_read(range, lines);
        match self.of(hash) {
            Some(seen) if seen.resident.covers(&wanted) => Verdict::Repeat,
            Some(seen) if !seen.resident.is_empty() => Verdict::Extends,
            _ if self.read_count == 0 => Verdict::First,
            _ => match self.seen.iter().rev().find(|seen| seen.read) {
                Some(read) if read.hash != hash => Verdict::Changed,
                // The same content, no longer in the context.
                _ => Verdict::First,
            },
        }
    }

    /// Some lines of a content entered the context.
    pub fn see(&mut self, hash: Option<Hash>, ranges: &RangeSet, resident: bool, assumed: bool) {
        self.uncertain = false;
        let mut entry = match self.seen.iter().position(|seen| seen.hash == hash) {
            Some(index) => self.seen.remove(index),
            None => Seen {
                hash,
                ranges: RangeSet::default(),
                resident: RangeSet::default(),
                assumed,
                read: false,
            },
        };
        entry.ranges.add(ranges);
        entry.assumed = assumed;
        if resident {
            entry.read = true;
            entry.resident.add(ranges);
            // The newer text of a line stands in place of the older. Should
            // the older come back, the context says something else.
            for older in &mut self.seen {
                older.ranges = older.ranges.minus(ranges);
                older.resident = older.resident.minus(ranges);
            }
        }
        // An absence has no lines: any text stands in its place, also one that
        // the session wrote itself.
        for absence in self.seen.iter_mut().filter(|seen| seen.hash.is_none()) {
            absence.ranges = RangeSet::default();
        }
        few::push(&mut self.seen, entry);
        if self.seen.len() > CONTENTS_KEPT {
            self.seen.remove(0);
        }
    }

    /// A version that the session was taken to have written is not its own:
    /// what was assumed of it was not seen.
    pub fn disbelieve(&mut self, hash: Option<Hash>, version: u64) {
        let before = self.seen.len();
        self.seen
            .retain(|seen| !(seen.assumed && !seen.read && seen.hash == hash));
        if self.seen.len() < before {
            self.at = self.at.min(version.saturating_sub(1));
        }
    }

    /// Nothing read is in the context any more.
    pub fn evict(&mut self) -> bool {
        let mut any = false;
        for seen in &mut self.seen {
            any |= !seen.resident.is_empty();
            seen.resident = RangeSet::default();
        }
        any
    }

    /// Those lines are no longer in the context.
    pub fn evict_range(&mut self, range: LineRange) -> bool {
        let cut = RangeSet::of_read(Some(range), self.record.lines);
        let mut any = false;
        for seen in &mut self.seen {
            let left = seen.resident.minus(&cut);
            any |= left != seen.resident;
            seen.resident = left;
        }
        any
    }

    /// A newer record stands in place of the one so far. An access that names
    /// no step was not before the last one that did.
    pub fn supersede(&mut self, mut record: PastRecord) {
        record.step = record.step.or(self.record.step);
        let old = std::mem::replace(&mut self.record, record);
        few::push(&mut self.past, old);
        if self.past.len() > RECORDS_KEPT {
            self.past.remove(0);
        }
    }
}
