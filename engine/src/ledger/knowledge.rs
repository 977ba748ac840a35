//! What one session knows of one file (SEEN-1 to SEEN-4).
//!
//! It believes one thing about each line: what it was shown, or wrote, last.
//! So each line counts for the newest content that it came from, and a content
//! of which no line is left counts for nothing.

use touchmark_proto::files::{Source, Verdict};
use touchmark_proto::{Hash, LineRange, Millis, SessionId};

use crate::ledger::state::{KeptVersion, PathState};
use crate::ranges::RangeSet;
use crate::small_set;

/// Contents told apart per session and file. The lines of older ones are stale
/// until they are shown again, whatever the file holds.
const CONTENTS_KEPT: usize = 16;

/// Ranges kept of one content. The lines beyond are stale, too.
const RANGES_KEPT: usize = 64;

/// Superseded records kept per session and file.
const RECORDS_KEPT: usize = 4;

/// A content that entered a session's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which; `None` where the session removed the file.
    pub hash: Option<Hash>,
    /// Which of its lines were shown or written, but for those in the place of
    /// which another content was shown since.
    pub ranges: RangeSet,
    /// Which of them were shown and are still in the context.
    pub resident: RangeSet,
    /// The session did not name the hash.
    pub assumed: bool,
    /// It came by a read, not by the session's own write.
    pub read: bool,
    /// The session wrote it, and its context was not cut since: it believes
    /// the lines that it was not shown, too.
    pub written: bool,
    /// These lines were shown of an older content, and stand in this one
    /// unchanged, perhaps elsewhere (SEEN-8): believed, and no reason not to
    /// show them again.
    pub moved: bool,
}

impl Seen {
    /// The lines that the session takes the file to hold from this content.
    fn believed(&self) -> &RangeSet {
        match self.written {
            true => &self.ranges,
            false => &self.resident,
        }
    }

    fn forget(&mut self, ranges: &RangeSet) {
        self.ranges = self.ranges.minus(ranges);
        self.resident = self.resident.minus(ranges);
    }
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
    /// The contents that it has lines of, the newest last.
    pub seen: Vec<Seen>,
    /// The last read could not be tied to a content (SEEN-1).
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
    /// Lines that came from a content that cannot be told: they are stale
    /// until they are shown again.
    pub unsure: RangeSet,
    /// What the session's own last write took the place of, should that prove
    /// not to be its own.
    #[allow(clippy::box_collection)] // rare, and there are many of these
    pub displaced: Option<Box<Vec<Seen>>>,
    /// What others had done to the name that the session used, until that was
    /// a name of this file (FILE-2), and its copy out of date.
    #[allow(clippy::box_collection)] // rare as well
    pub brought: Option<Box<Vec<KeptVersion>>>,
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
            unsure: RangeSet::default(),
            displaced: None,
            brought: None,
        }
    }

    /// Whether the session read the file last without anybody knowing what it
    /// saw (SEEN-9).
    pub fn is_missed(&self) -> bool {
        self.record.source == Source::ReadMissed
    }

    /// Whether that content may be what such a read saw: the file held it when
    /// the read became known, and nothing was recorded since but an own write.
    pub fn may_have_seen(&self, hash: Option<Hash>) -> bool {
        let before = self.past.last();
        let before = before.filter(|_| self.record.source == Source::AgentEdited);
        let mut newest = before.into_iter().chain([&self.record]);
        newest.any(|record| record.source == Source::ReadMissed && record.hash == hash)
    }

    /// Whether the session read or wrote that content, and then read the newer
    /// one and no other: of the older no line may be left to it, and yet it
    /// has seen it.
    pub fn saw_before(&self, hash: Option<Hash>, newer: Option<Hash>) -> bool {
        let by_edit = |record: &PastRecord| record.source == Source::AgentEdited;
        // An edit that begins names what it finds.
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

    /// A read was missed: nothing is known of what the session believes, and
    /// it is told what changes from now on.
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

    /// Whether the session has seen anything of the file.
    pub fn any(&self) -> bool {
        self.uncertain || !self.seen.is_empty() || !self.unsure.is_empty()
    }

    /// Whether the file holds something else than the session knows of.
    pub fn differs(&self, held: Option<Hash>) -> bool {
        match self.any() {
            true => !self.is_fresh(held),
            false => self.baseline != held,
        }
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

    /// Lines that the session takes the file to hold and that come from other
    /// contents than `hash`, counted in those.
    pub fn stale_ranges(&self, hash: Option<Hash>) -> RangeSet {
        let mut stale = self.unsure.clone();
        for seen in self.seen.iter().filter(|seen| seen.hash != hash) {
            stale.add(seen.believed());
        }
        stale
    }

    /// Whether `hash` is what the session may believe the file to hold
    /// (SEEN-2, `fresh`).
    pub fn is_fresh(&self, hash: Option<Hash>) -> bool {
        let Some(seen) = self.of(hash).filter(|_| !self.uncertain) else {
            return false;
        };
        // Where no line is believed any more, the content seen last counts.
        let newest = || self.last().is_some_and(|last| last.hash == hash);
        self.stale_ranges(hash).is_empty() && (!seen.believed().is_empty() || newest())
    }

    /// Whether the session has seen that content, in part or whole, so that it
    /// may edit the file (SEEN-3).
    pub fn may_edit(&self, hash: Option<Hash>) -> bool {
        !self.uncertain && self.of(hash).is_some()
    }

    /// What a read of those lines at that content is (SEEN-4).
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
                // The same content, no longer in the context.
                _ => Verdict::First,
            },
        }
    }

    /// Lines of a content were shown: they stand in the place of what the
    /// session had of these lines.
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

    /// The session has these lines of a content as well: it came to them by
    /// another name of the file (FILE-1).
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

    /// What two sessions knew of a file, in one context: lines that either was
    /// shown last stand in the place of what the other had of them.
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
                // Older than all that was shown later.
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

    /// Lines believed of `from` stand in `to` as `kept`; in the place of the
    /// others there are now the lines `changed` (SEEN-8).
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
            // Before what was shown of this content itself.
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

    /// Contents of which lines are believed though the file holds `now`, with
    /// those lines.
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

    /// Lines of a content that cannot be told were shown (SEEN-1).
    pub fn shown_unsure(&mut self, ranges: &RangeSet) {
        self.uncertain = true;
        self.cover(None, ranges);
        self.unsure.add(ranges);
        self.bound();
    }

    /// The session wrote the file: it believes all of it, and is shown nothing
    /// by that (SEEN-4).
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

    /// Takes lines away from all contents but this one, which is taken out.
    fn cover(&mut self, hash: Option<Hash>, ranges: &RangeSet) -> Option<Seen> {
        let is_it = |seen: &Seen| seen.hash == hash && !seen.moved;
        let known = self.seen.iter().position(is_it);
        let same = known.map(|index| self.seen.remove(index));
        self.unsure = self.unsure.minus(ranges);
        let displaced = self.displaced.iter_mut().flat_map(|all| all.iter_mut());
        for older in self.seen.iter_mut().chain(displaced) {
            older.forget(ranges);
        }
        // An absence has no lines: any text stands in its place.
        self.seen
            .retain(|seen| seen.hash.is_some() && !seen.ranges.is_empty());
        if *ranges == RangeSet::whole() {
            self.displaced = None;
        }
        same.filter(|seen| seen.hash.is_some())
    }

    /// Keeps what is kept within bounds. What is dropped is stale from now on,
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

    /// A version that the session was taken to have written is not its own:
    /// it has not seen that, and believes what it did before.
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

    /// Nothing is in the context any more.
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
