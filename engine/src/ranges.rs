//! Sets of line numbers.

use smallvec::{SmallVec, smallvec};
use touchmark_proto::LineRange;

use crate::text::lines::Hunk;

/// A set of lines, as sorted, disjoint, non-adjacent ranges. A whole file,
/// however many lines it has, is `1..=u32::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet(pub(crate) SmallVec<[(u32, u32); 2]>);

impl RangeSet {
    /// Returns the set of all lines.
    pub fn whole() -> Self {
        Self(smallvec![(1, u32::MAX)])
    }

    /// Returns the lines of one read of a file with `lines` lines; `None` reads
    /// all. A range that includes the last line extends to the end, so that
    /// ranges that together cover every line give the whole file.
    pub fn of_read(range: Option<LineRange>, lines: u32) -> Self {
        match range {
            Some(range) if range.end < lines => Self(smallvec![(range.start, range.end)]),
            Some(range) => Self(smallvec![(range.start, u32::MAX)]),
            None => Self::whole(),
        }
    }

    /// Returns the lines of one read of a content whose number of lines is not
    /// known: exactly these lines.
    pub fn exactly(range: Option<LineRange>) -> Self {
        range.map_or_else(Self::whole, |range| {
            Self(smallvec![(range.start, range.end)])
        })
    }

    /// Returns the set with these lines added.
    #[must_use]
    pub fn with(mut self, start: u32, end: u32) -> Self {
        self.add(&Self(smallvec![(start, end)]));
        self
    }

    /// Returns the lines of the set from `start` to `end`, both included.
    #[must_use]
    pub fn between(&self, start: u32, end: u32) -> Self {
        let parts = self.0.iter().map(|&(s, e)| (s.max(start), e.min(end)));
        Self(parts.filter(|(s, e)| s <= e).collect())
    }

    /// Returns the set with each line number increased by `by`, which may be
    /// negative. A range up to the end of the file still ends there.
    #[must_use]
    pub fn shifted(&self, by: i64) -> Self {
        let shift = |line: u32| match line {
            u32::MAX => line,
            _ => u32::try_from(i64::from(line) + by).unwrap_or(1).max(1),
        };
        Self(self.0.iter().map(|&(s, e)| (shift(s), shift(e))).collect())
    }

    /// Returns the lines of an older text that a newer one still has, counted in
    /// the newer one. The hunks are the differences of the two, in order.
    #[must_use]
    pub fn carried(&self, hunks: &[Hunk]) -> Self {
        let mut kept = Self::default();
        let (mut next, mut shift) = (1_u32, 0_i64);
        for hunk in hunks {
            let until = self.between(next, hunk.old_start.saturating_sub(1));
            kept.add(&until.shifted(shift));
            next = hunk.old_start.saturating_add(hunk.old_lines);
            shift = i64::from(hunk.new_start) + i64::from(hunk.new_lines) - i64::from(next);
        }
        kept.add(&self.between(next, u32::MAX).shifted(shift));
        kept
    }

    /// Returns the lines after the first `most` ranges.
    pub fn beyond(&self, most: usize) -> Self {
        Self(self.0.iter().skip(most).copied().collect())
    }

    /// Reduces the set to at most `most` ranges. The last one then includes
    /// everything up to the end of the removed ones.
    pub fn coarsen(&mut self, most: usize) {
        if self.0.len() > most
            && let Some((_, end)) = self.0.last().copied()
        {
            self.0.truncate(most);
            if let Some(last) = self.0.last_mut() {
                last.1 = end;
            }
        }
    }

    /// Returns whether the set has no lines.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds every line of `other`.
    pub fn add(&mut self, other: &Self) {
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(&other.0);
        all.sort_unstable();
        for (start, end) in all {
            match self.0.last_mut() {
                Some(last) if start <= last.1.saturating_add(1) => last.1 = last.1.max(end),
                _ => self.0.push((start, end)),
            }
        }
    }

    /// Returns the set without the lines of `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = SmallVec::new();
        for &(start, end) in &self.0 {
            // The next line of this range that is neither kept nor removed yet;
            // `None` after the last line.
            let mut next = Some(start);
            for &(cut_start, cut_end) in &other.0 {
                let Some(from) = next else { break };
                if cut_end < from || cut_start > end {
                    continue;
                }
                if cut_start > from {
                    left.push((from, cut_start - 1));
                }
                next = cut_end.checked_add(1).filter(|line| *line <= end);
            }
            if let Some(from) = next {
                left.push((from, end));
            }
        }
        Self(left)
    }

    /// Returns whether every line of `other` is in the set.
    pub fn covers(&self, other: &Self) -> bool {
        other.minus(self).is_empty()
    }

    /// Returns the set as ranges of a file with this number of lines.
    pub fn ranges(&self, lines: u32) -> Vec<LineRange> {
        self.0
            .iter()
            .filter(|(start, _)| *start <= lines.max(1))
            .map(|&(start, end)| LineRange {
                start,
                end: end.min(lines.max(1)),
            })
            .collect()
    }
}

impl FromIterator<LineRange> for RangeSet {
    fn from_iter<T: IntoIterator<Item = LineRange>>(ranges: T) -> Self {
        let ranges = ranges.into_iter();
        ranges.fold(Self::default(), |all, range| {
            all.with(range.start, range.end)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(ranges: &[(u32, u32)]) -> RangeSet {
        let mut all = RangeSet::default();
        for &range in ranges {
            all.add(&RangeSet(smallvec![range]));
        }
        all
    }

    fn lines(set: &RangeSet) -> BTreeSet<u32> {
        set.0.iter().flat_map(|&(start, end)| start..=end).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_numbers(
            a in prop::collection::vec((1u32..40, 0u32..10), 0..6),
            b in prop::collection::vec((1u32..40, 0u32..10), 0..6),
        ) {
            let make = |v: &[(u32, u32)]| set(&v.iter().map(|&(s, l)| (s, s + l)).collect::<Vec<_>>());
            let (a, b) = (make(&a), make(&b));
            prop_assert_eq!(lines(&a.minus(&b)), &lines(&a) - &lines(&b));
            prop_assert_eq!(a.covers(&b), lines(&b).is_subset(&lines(&a)));
            let mut both = a.clone();
            both.add(&b);
            prop_assert_eq!(lines(&both), &lines(&a) | &lines(&b));
        }
    }

    #[test]
    fn a_range_over_all_lines_is_the_whole() {
        assert_eq!(
            RangeSet::of_read(Some(LineRange { start: 1, end: 9 }), 9),
            RangeSet::whole()
        );
        assert_ne!(
            RangeSet::of_read(Some(LineRange { start: 1, end: 8 }), 9),
            RangeSet::whole()
        );
        assert!(RangeSet::whole().covers(&set(&[(3, 4), (9, 9)])));
        assert!(!set(&[(1, 100)]).covers(&RangeSet::whole()));
    }
}
