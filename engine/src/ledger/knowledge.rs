//! What one session has seen of one file (SEEN-1 to SEEN-4).
//!
//! Of each line, only what the session was shown or wrote last is on record. So
//! each line counts for the newest content that it came from, and a content
//! without any line left is dropped.

use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{Hash, LineRange, Millis};

pub use crate::ledger::seen::{PastRecord, Seen};
use crate::ledger::state::version::KeptVersion;
use crate::ranges::RangeSet;
use crate::small_set;

/// The maximum number of contents that are kept for a session and a file. Lines
/// of older ones are stale until they are shown again, whatever the file's
/// content is.
const CONTENTS_KEPT: usize = 16;

/// The maximum number of ranges that are kept for one content. Lines beyond
/// them are stale until they are shown again.
const RANGES_KEPT: usize = 64;

/// The maximum number of superseded records that are kept for a session and a
/// file.
const RECORDS_KEPT: usize = 4;

/// What one session has seen of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// The content when the session began to track the file; `None` for no
    /// file.
    pub baseline: Option<Hash>,
    /// The contents of which the session has lines on record, the newest last.
    pub seen: Vec<Seen>,
    /// Whether it is unknown which content the last read was of (SEEN-1).
    pub uncertain: bool,
    /// The number of the fact up to which the copy includes changes. Later
    /// versions are changes.
    pub at: u64,
    /// The copy is of a content that the daemon never saw.
    pub foreign: bool,
    /// The number of the read that recorded a content other than the file's
    /// current one; 0 if the last read was of the current one.
    pub behind: u64,
    /// The number of the newest fact that was reported to the session (MOD-1).
    pub told: u64,
    /// The number of reads since the last invalidation.
    pub read_count: u32,
    /// When the session last read the file.
    pub read_at: Option<Millis>,
    /// When the session last wrote the file.
    pub edit_at: Option<Millis>,
    /// A rename made this copy, and no request of the session has named the
    /// path since (ATTR-12).
    pub copied: bool,
    /// The newest record of how the file came into the context.
    pub record: PastRecord,
    /// Superseded records, the newest last.
    pub past: Vec<PastRecord>,
    /// Lines whose content is not known. They are stale until they are shown
    /// again.
    pub unsure: RangeSet,
    /// The entries of `seen` from before the session's own last write, in case
    /// that write turns out to be another's.
    #[allow(clippy::box_collection)] // rare, and there are many `Knowledge` values
    pub displaced: Option<Box<Vec<Seen>>>,
    /// What others had done to the name that the session used, before it became
    /// a name of this file (FILE-2). Kept while the session's copy is out of
    /// date.
    #[allow(clippy::box_collection)] // rare, and there are many `Knowledge` values
    pub brought: Option<Box<Vec<KeptVersion>>>,
}

impl Knowledge {
    /// Returns the knowledge of a session that begins to track a path with this
    /// content at fact `n`.
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
            unsure: RangeSet::default(),
            displaced: None,
            brought: None,
        }
    }

    /// Returns whether the session's last read was missed, so that it is not
    /// known what it saw (SEEN-9).
    pub fn is_missed(&self) -> bool {
        self.record.source == Source::ReadMissed
    }

    /// Returns whether a missed read may have seen this content: the file had
    /// it when the miss became known, and nothing was recorded since except an
    /// own write.
    pub fn may_have_seen(&self, hash: Option<Hash>) -> bool {
        let before = self.past.last();
        let before = before.filter(|_| self.record.source == Source::AgentEdited);
        let mut newest = before.into_iter().chain([&self.record]);
        newest.any(|record| record.source == Source::ReadMissed && record.hash == hash)
    }

    /// Returns whether the session read or wrote one content, and then read the
    /// newer one and no other. It has seen the older one, even if no line of
    /// that is on record any more.
    pub fn saw_before(&self, hash: Option<Hash>, newer: Option<Hash>) -> bool {
        let by_edit = |record: &PastRecord| record.source == Source::AgentEdited;
        // The beginning of an edit records the file's current content, without
        // the session having seen it.
        let begun = |record: &PastRecord| by_edit(record) && self.edit_at != Some(record.time);
        let mut newest = [&self.record].into_iter().chain(self.past.iter().rev());
        let mut read = false;
        let before = newest.find(|record| {
            read |= !by_edit(record) && record.hash == newer;
            record.hash != newer && !(record.hash == hash && begun(record))
        });
        let seen = |record: &PastRecord| by_edit(record) || record.source == Source::ReadTool;
        before.is_some_and(|before| read && before.hash == hash && seen(before))
    }

    /// Records a missed read: it is not known what the session has seen, and
    /// changes from now on are reported.
    pub fn miss(&mut self, n: u64, held: Option<Hash>, record: PastRecord) {
        self.supersede(record);
        let fresh = Self::new(n, held, self.record.clone());
        *self = Self {
            read_count: self.read_count,
            read_at: self.read_at,
            edit_at: self.edit_at,
            past: std::mem::take(&mut self.past),
            ..fresh
        };
    }

    /// Returns whether the session has seen anything of the file.
    pub fn any(&self) -> bool {
        self.uncertain || !self.seen.is_empty() || !self.unsure.is_empty()
    }

    /// Returns whether the file's content differs from the one that the session
    /// has on record.
    pub fn differs(&self, held: Option<Hash>) -> bool {
        match self.any() {
            true => !self.is_fresh(held),
            false => self.baseline != held,
        }
    }

    /// Returns the contents of which the session has seen lines, with the lines
    /// of each.
    pub fn contents(&self) -> Vec<(Hash, RangeSet)> {
        let seen = self.seen.iter().filter(|seen| !seen.ranges.is_empty());
        seen.filter_map(|seen| Some((seen.hash?, seen.ranges.clone())))
            .collect()
    }

    /// Returns the newest entry of a content, or `None` if nothing of it is on
    /// record.
    pub fn of(&self, hash: Option<Hash>) -> Option<&Seen> {
        self.seen.iter().rev().find(|seen| seen.hash == hash)
    }

    /// Returns the entry of the content seen last, or `None` if that content is
    /// not known.
    pub fn last(&self) -> Option<&Seen> {
        self.seen.last().filter(|_| !self.uncertain)
    }

    /// Returns the lines on record that come from contents other than `hash`,
    /// counted in those contents.
    pub fn stale_ranges(&self, hash: Option<Hash>) -> RangeSet {
        let mut stale = self.unsure.clone();
        for seen in self.seen.iter().filter(|seen| seen.hash != hash) {
            stale.add(seen.believed());
        }
        stale
    }

    /// Returns whether the session's copy is `fresh` if `hash` is the file's
    /// content (SEEN-2).
    pub fn is_fresh(&self, hash: Option<Hash>) -> bool {
        let Some(seen) = self.of(hash).filter(|_| !self.uncertain) else {
            return false;
        };
        // If no line is on record any more, the content seen last decides.
        let newest = || self.last().is_some_and(|last| last.hash == hash);
        self.stale_ranges(hash).is_empty() && (!seen.believed().is_empty() || newest())
    }

    /// Returns whether all lines on record were shown of this content itself.
    pub fn was_shown_only(&self, hash: Option<Hash>) -> bool {
        let shown = |seen: &Seen| seen.hash == hash && seen.read && !seen.moved;
        !self.uncertain
            && self.unsure.is_empty()
            && !self.seen.is_empty()
            && self.seen.iter().all(shown)
    }

    /// Returns whether the session has seen a content, in part or whole, so
    /// that it may edit the file (SEEN-3).
    pub fn may_edit(&self, hash: Option<Hash>) -> bool {
        !self.uncertain && self.of(hash).is_some()
    }

    /// Returns whether a read of a range at a content is a first read, a
    /// repeat, an extension or a read of changed lines (SEEN-4).
    pub fn verdict(&self, hash: Option<Hash>, range: Option<LineRange>) -> Verdict {
        let wanted = RangeSet::exactly(range);
        let unsure = self.uncertain || wanted.minus(&self.unsure) != wanted;
        if unsure && self.read_count > 0 {
            return Verdict::Changed;
        }
        let mut of_it = self.seen.iter().filter(|seen| seen.hash == hash);
        let shown = |seen: &Seen| !seen.moved && seen.resident.covers(&wanted);
        if of_it.clone().any(shown) {
            return Verdict::Repeat;
        }
        match of_it.any(|seen| !seen.resident.is_empty()) {
            true => Verdict::Extends,
            _ if self.read_count == 0 => Verdict::First,
            _ => match self.seen.iter().rev().find(|seen| seen.read) {
                Some(read) if read.hash != hash => Verdict::Changed,
                // The content is the same, but it is no longer in the context.
                _ => Verdict::First,
            },
        }
    }

    /// Records that lines of a content were shown. They replace what was on
    /// record for these lines.
    pub fn shown(&mut self, hash: Hash, ranges: &RangeSet) {
        self.uncertain = false;
        let mut entry = self.cover(Some(hash), ranges).unwrap_or(Seen {
            hash: Some(hash),
            ranges: RangeSet::default(),
            resident: RangeSet::default(),
            assumed: false,
            read: true,
            written: false,
            moved: false,
        });
        entry.read = true;
        entry.assumed = false;
        entry.ranges.add(ranges);
        entry.resident.add(ranges);
        small_set::push(&mut self.seen, entry);
        self.bound();
    }

    /// Adds lines of a content that the session came to by another name of the
    /// file (FILE-1).
    pub fn add(&mut self, also: &Seen) {
        let same = |seen: &&mut Seen| (seen.hash, seen.moved) == (also.hash, also.moved);
        match self.seen.iter_mut().find(same) {
            Some(seen) => {
                seen.ranges.add(&also.ranges);
                seen.resident.add(&also.resident);
                seen.read |= also.read;
                seen.written |= also.written;
            }
            None => small_set::push(&mut self.seen, also.clone()),
        }
        self.bound();
    }

    /// Merges what two sessions have seen of a file into one context. For each
    /// line, what was shown last replaces what the other had.
    pub fn shown_to_both(one: Self, other: Self, held: Option<Hash>) -> Self {
        let last = |known: &Self| known.read_at.max(known.edit_at);
        let (mut earlier, mut later) = match last(&one) > last(&other) {
            true => (other, one),
            false => (one, other),
        };
        if later.is_missed() || !earlier.any() {
            return later;
        }
        for seen in &later.seen {
            let same = earlier.cover(seen.hash, &seen.ranges);
            earlier.seen.extend(same);
        }
        for seen in earlier.seen.iter().rev() {
            let known = |own: &Seen| (own.hash, own.moved) == (seen.hash, seen.moved);
            match later.seen.iter().any(known) {
                true => later.add(seen),
                // The lines of this content are older than all that was shown
                // later.
                false => later.seen.insert(0, seen.clone()),
            }
        }
        later.unsure.add(&earlier.unsure);
        if later.differs(held) && earlier.differs(held) {
            later.at = later.at.min(earlier.at);
        }
        later.told = later.told.max(earlier.told);
        later.behind = later.behind.max(earlier.behind);
        later.read_count = later.read_count.max(earlier.read_count);
        later.read_at = later.read_at.max(earlier.read_at);
        later.edit_at = later.edit_at.max(earlier.edit_at);
        later.copied &= earlier.copied;
        later.bound();
        later
    }

    /// Records that lines of `from` are at the places `kept` in `to`, and that
    /// the lines `changed` of `to` replaced others (SEEN-8).
    pub fn carry(&mut self, from: Hash, to: Hash, kept: &RangeSet, changed: &RangeSet) {
        let is_it = |seen: &Seen| seen.hash == Some(from);
        let Some(old) = self.seen.iter().find(|seen| is_it(seen)).cloned() else {
            return;
        };
        self.seen.retain(|seen| !is_it(seen));
        let shown = self.of(Some(to)).map(|seen| seen.resident.clone());
        let shown = shown.unwrap_or_default();
        self.unsure.add(&changed.minus(&shown));
        let kept = kept.minus(&shown);
        let known = |seen: &&mut Seen| seen.hash == Some(to) && seen.moved;
        match self.seen.iter_mut().find(known) {
            Some(seen) => {
                seen.ranges.add(&kept);
                seen.resident.add(&kept);
            }
            None if kept.is_empty() => {}
            // Carried lines go before the lines that were shown of this content
            // itself.
            None => self.seen.insert(
                0,
                Seen {
                    hash: Some(to),
                    ranges: kept.clone(),
                    resident: kept,
                    written: false,
                    moved: true,
                    ..old
                },
            ),
        }
        self.bound();
    }

    /// Returns the contents other than `now` of which lines are on record, each
    /// with those lines.
    pub fn believed_of_others(&self, now: Hash) -> impl Iterator<Item = (Hash, RangeSet)> {
        let mut others: Vec<(Hash, RangeSet)> = Vec::new();
        for seen in self.seen.iter().filter(|seen| seen.hash != Some(now)) {
            let Some(hash) = seen.hash.filter(|_| !seen.believed().is_empty()) else {
                continue;
            };
            match others.iter_mut().find(|(other, _)| *other == hash) {
                Some((_, lines)) => lines.add(seen.believed()),
                None => others.push((hash, seen.believed().clone())),
            }
        }
        others.into_iter()
    }

    /// Records that lines were shown of a content that is not known (SEEN-1).
    pub fn shown_unsure(&mut self, ranges: &RangeSet) {
        self.uncertain = true;
        self.cover(None, ranges);
        self.unsure.add(ranges);
        self.bound();
    }

    /// Records that the session wrote the file. All lines are on record then,
    /// but none of them was shown (SEEN-4).
    pub fn wrote(&mut self, hash: Option<Hash>, assumed: bool) {
        self.uncertain = false;
        self.unsure = RangeSet::default();
        let before = std::mem::take(&mut self.seen);
        self.displaced = (!before.is_empty()).then(|| Box::new(before));
        small_set::push(
            &mut self.seen,
            Seen {
                hash,
                ranges: RangeSet::whole(),
                resident: RangeSet::default(),
                assumed,
                read: false,
                written: true,
                moved: false,
            },
        );
    }

    /// Removes lines from all contents except `hash`. Returns the entry of
    /// `hash`, removed from the list.
    fn cover(&mut self, hash: Option<Hash>, ranges: &RangeSet) -> Option<Seen> {
        let is_it = |seen: &Seen| seen.hash == hash && !seen.moved;
        let known = self.seen.iter().position(is_it);
        let same = known.map(|index| self.seen.remove(index));
        self.unsure = self.unsure.minus(ranges);
        let displaced = self.displaced.iter_mut().flat_map(|all| all.iter_mut());
        for older in self.seen.iter_mut().chain(displaced) {
            older.forget(ranges);
        }
        // An absent file has no lines, so any text replaces it.
        self.seen
            .retain(|seen| seen.hash.is_some() && !seen.ranges.is_empty());
        if *ranges == RangeSet::whole() {
            self.displaced = None;
        }
        same.filter(|seen| seen.hash.is_some())
    }

    /// Drops entries beyond the limits. Lines that are dropped count as stale,
    /// which is the safe side.
    fn bound(&mut self) {
        if self.seen.len() > CONTENTS_KEPT {
            let oldest = self.seen.remove(0);
            self.unsure.add(oldest.believed());
        }
        for seen in &mut self.seen {
            let beyond = seen.ranges.beyond(RANGES_KEPT);
            if !beyond.is_empty() {
                seen.forget(&beyond);
                self.unsure.add(&beyond);
            }
        }
        self.unsure.coarsen(RANGES_KEPT);
    }

    /// Takes back a version that was attributed to the session but is not its
    /// own: the session has not seen it, and what was on record before is
    /// restored.
    pub fn disbelieve(&mut self, hash: Option<Hash>, version: u64) {
        let is_it = |seen: &Seen| !seen.read && !seen.moved && seen.hash == hash;
        let Some(index) = self.seen.iter().position(is_it) else {
            return;
        };
        self.seen.remove(index);
        if let Some(before) = self.displaced.take() {
            let since = std::mem::replace(&mut self.seen, *before);
            self.seen.retain(|seen| !seen.ranges.is_empty());
            self.seen.extend(since);
            self.bound();
        }
        self.at = self.at.min(version.saturating_sub(1));
    }

    /// Records that nothing of the file is in the context any more. Returns
    /// whether anything was.
    pub fn evict(&mut self) -> bool {
        let mut any = !self.unsure.is_empty();
        self.unsure = RangeSet::default();
        let displaced = self.displaced.iter_mut().flat_map(|all| all.iter_mut());
        for seen in self.seen.iter_mut().chain(displaced) {
            any |= !seen.resident.is_empty();
            seen.resident = RangeSet::default();
            seen.written = false;
        }
        any
    }

    /// Records that a range of lines is no longer in the context. Returns
    /// whether any of it was.
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

    /// Replaces the current record with a newer one. A record without a step
    /// keeps the last known step, since it is not older than that.
    pub fn supersede(&mut self, mut record: PastRecord) {
        record.step = record.step.or(self.record.step);
        let old = std::mem::replace(&mut self.record, record);
        small_set::push(&mut self.past, old);
        if self.past.len() > RECORDS_KEPT {
            self.past.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knowledge() -> Knowledge {
        let record = PastRecord {
            source: Source::ReadTool,
            step: None,
            time: 0,
            lines: 0,
            hash: None,
        };
        Knowledge::new(1, None, record)
    }

    fn lines(start: u32, end: u32) -> RangeSet {
        RangeSet::exactly(Some(LineRange { start, end }))
    }

    fn content(number: u32) -> Hash {
        Hash::of(&number.to_le_bytes())
    }

    #[test]
    fn a_line_counts_for_the_newest_content_it_came_from() {
        let mut known = knowledge();
        known.shown(content(0), &RangeSet::whole());
        known.shown(content(1), &lines(1, 9));
        assert!(!known.is_fresh(Some(content(0))));
        assert!(!known.is_fresh(Some(content(1))));
        known.shown(content(1), &lines(10, u32::MAX));
        assert!(known.is_fresh(Some(content(1))));
        assert!(
            known.of(Some(content(0))).is_none(),
            "nothing is left of it"
        );
        known.wrote(Some(content(2)), false);
        known.shown(content(3), &lines(1, 1));
        assert!(
            !known.is_fresh(Some(content(3))),
            "the rest is its own write"
        );
    }

    #[test]
    fn what_two_were_shown_is_believed_as_it_was_shown_last() {
        let shown = |at, number, ranges| {
            let mut known = knowledge();
            known.shown(content(number), &ranges);
            known.read_at = Some(at);
            known
        };
        let held = Some(content(1));
        let both = |one, other| Knowledge::shown_to_both(one, other, held);
        let all = RangeSet::whole();
        let known = both(shown(1, 0, all.clone()), shown(2, 1, all.clone()));
        assert!(known.is_fresh(held), "in whichever order they are named");
        let known = both(shown(2, 1, all.clone()), shown(1, 0, all.clone()));
        assert!(known.is_fresh(held));
        let known = both(shown(2, 0, all.clone()), shown(1, 1, all.clone()));
        assert!(!known.is_fresh(held), "what was shown last is out of date");
        let known = both(shown(1, 0, all), shown(2, 1, lines(1, 9)));
        assert!(!known.is_fresh(held), "the rest is as it was shown before");
        let known = both(shown(1, 1, lines(10, u32::MAX)), shown(2, 1, lines(1, 9)));
        assert!(known.is_fresh(held));
        assert_eq!(known.verdict(held, None), Verdict::Repeat);
    }

    #[test]
    fn what_was_not_its_own_write_is_not_believed() {
        let mut known = knowledge();
        known.shown(content(0), &RangeSet::whole());
        known.wrote(Some(content(1)), true);
        assert!(!known.is_fresh(Some(content(0))));
        known.disbelieve(Some(content(1)), 5);
        assert!(known.is_fresh(Some(content(0))));
        assert!(!known.may_edit(Some(content(1))));
    }

    #[test]
    fn beyond_its_bounds_it_is_stale_until_shown_again() {
        let mut known = knowledge();
        for number in 1..=100 {
            known.shown(content(number), &lines(number * 2, number * 2));
        }
        assert!(known.seen.len() <= CONTENTS_KEPT);
        known.shown(content(0), &lines(100, u32::MAX));
        assert!(
            !known.is_fresh(Some(content(0))),
            "of contents told apart no more"
        );
        known.shown(content(0), &lines(1, 99));
        assert!(known.is_fresh(Some(content(0))));
        for number in 1..=100 {
            known.shown(content(1), &lines(number * 2, number * 2));
        }
        known.shown(content(0), &lines(1, 150));
        assert!(!known.is_fresh(Some(content(0))), "of ranges kept no more");
        known.shown(content(0), &RangeSet::whole());
        assert!(known.is_fresh(Some(content(0))));
    }
}
