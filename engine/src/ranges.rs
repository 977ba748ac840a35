//! Sets of lines.

use smallvec::{SmallVec, smallvec};
use touchmark_proto::LineRange;

/// A set of lines as sorted, disjoint, non-adjacent ranges. The whole of a
/// file, however many lines it has, is `1..=u32::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet(pub(crate) SmallVec<[(u32, u32); 2]>);

impl RangeSet {
    /// Every line there is.
    pub fn whole() -> Self {
        Self(smallvec![(1, u32::MAX)])
    }

    /// The lines of one read of a file of `lines`: all for `None`. A range
    /// that reaches the last line reaches the end, so that ranges that
    /// together cover every line make the whole.
    pub fn of_read(range: Option<LineRange>, lines: u32) -> Self {
        match range {
            Some(range) if range.end < lines => Self(smallvec![(range.start, range.end)]),
            Some(range) => Self(smallvec![(range.start, u32::MAX)]),
            None => Self::whole(),
        }
    }

    /// The lines of one read of a content of which nobody knows where it
    /// ends: those and no others.
    pub fn exactly(range: Option<LineRange>) -> Self {
        range.map_or_else(Self::whole, |range| {
            Self(smallvec![(range.start, range.end)])
        })
    }

    /// The same with these lines as well.
    #[must_use]
    pub fn with(mut self, start: u32, end: u32) -> Self {
        self.add(&Self(smallvec![(start, end)]));
        self
    }

    /// Those of its lines from `start` to `end`, both included.
    #[must_use]
    pub fn between(&self, start: u32, end: u32) -> Self {
        let parts = self.0.iter().map(|&(s, e)| (s.max(start), e.min(end)));
        Self(parts.filter(|(s, e)| s <= e).collect())
    }

    /// The same lines so much further down, or up. What reaches the end of a
    /// content reaches it still.
    #[must_use]
    pub fn shifted(&self, by: i64) -> Self {
        let shift = |line: u32| match line {
            u32::MAX => line,
            _ => u32::try_from(i64::from(line) + by).unwrap_or(1).max(1),
        };
        Self(self.0.iter().map(|&(s, e)| (shift(s), shift(e))).collect())
    }

    /// The lines after the first so many ranges.
    pub fn beyond(&self, most: usize) -> Self {
        Self(self.0.iter().skip(most).copied().collect())
    }

    /// At most so many ranges: the last one takes in what lies beyond, with
    /// all between.
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

    /// Whether no line is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes every line of `other` in.
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

    /// This set without the lines of `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = SmallVec::new();
        for &(start, end) in &self.0 {
            // The next line of this range not yet accounted for; past the
            // last line there is none.
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

    /// Whether every line of `other` is in it.
    pub fn covers(&self, other: &Self) -> bool {
        other.minus(self).is_empty()
    }

    /// As ranges of a file of that many lines.
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
