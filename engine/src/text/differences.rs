//! Where two texts differ, without what is equal at their beginning and at
//! their end.

use std::ops::Range;

use imara_diff::Algorithm;

use super::align::{Aligned, Region};

/// The number of bytes that are compared at once.
const BLOCK: usize = 4_096;

/// Two texts without the lines that are equal at their beginning and at their
/// end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Middle<'a> {
    /// The number of equal lines at the beginning.
    pub(crate) first: usize,
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
    /// The number of equal lines at the end.
    pub(crate) last: usize,
}

impl<'a> Middle<'a> {
    pub(crate) fn of(old: &'a [u8], new: &'a [u8]) -> Self {
        let mut same = same(old.chunks(BLOCK), new.chunks(BLOCK)) * BLOCK;
        same += self::same(old.iter().skip(same), new.iter().skip(same));
        if same < old.len().max(new.len()) {
            // Only whole lines are equal.
            same = memchr::memrchr(b'\n', &old[..same.min(old.len())]).map_or(0, |end| end + 1);
        }
        let same = same.min(old.len());
        let first = lines(&old[..same]).count();
        let (old, new) = (&old[same..], &new[same..]);
        let mut same = self::same(old.rchunks(BLOCK), new.rchunks(BLOCK)) * BLOCK;
        same = same.min(old.len()).min(new.len());
        same += self::same(old.iter().rev().skip(same), new.iter().rev().skip(same));
        let ends = [old, new].map(|text| text.len() - same);
        let begins = |(text, end): (&[u8], usize)| end == 0 || text[end - 1] == b'\n';
        if !begins((old, ends[0])) || !begins((new, ends[1])) {
            let end = memchr::memchr(b'\n', &old[ends[0]..]);
            same = end.map_or(0, |end| same - end - 1);
        }
        let (old, tail) = old.split_at(old.len() - same);
        Self {
            first,
            old,
            new: &new[..new.len() - same],
            last: lines(tail).count(),
        }
    }
}

/// Returns how many of the first items are equal.
fn same<T: PartialEq>(a: impl Iterator<Item = T>, b: impl Iterator<Item = T>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the lines of a text, with their line ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let (line, later) = rest.split_at(end);
        rest = later;
        (!line.is_empty()).then_some(line)
    })
}

/// Where two texts differ.
#[derive(Debug)]
pub(crate) struct Differences<'a> {
    /// The number of lines of the old text.
    pub(crate) old_lines: usize,
    /// The places, in order. With each: whether its lines were compared. If not,
    /// the old and the new ones may have lines in common.
    pub(crate) places: Vec<(Region, bool)>,
    /// The lines of the new text from `first` on, except for equal ones at the
    /// end.
    new: Vec<&'a [u8]>,
    first: usize,
}

impl<'a> Differences<'a> {
    pub(crate) fn of(middle: &Middle<'a>) -> Self {
        let [old, new]: [Vec<&[u8]>; 2] =
            [middle.old, middle.new].map(|text| lines(text).collect());
        let first = middle.first;
        let moved = |range: Range<usize>| range.start + first..range.end + first;
        let places = Aligned::of(Algorithm::Histogram, &old, &new).places();
        let places = places.into_iter();
        Self {
            old_lines: first + old.len() + middle.last,
            places: places
                .map(|((before, after), is_compared)| ((moved(before), moved(after)), is_compared))
                .collect(),
            new,
            first,
        }
    }

    /// Returns all lines of both texts as one place.
    pub(crate) fn all(old: &[&[u8]], new: Vec<&'a [u8]>) -> Self {
        let place = (0..old.len(), 0..new.len());
        Self {
            old_lines: old.len(),
            places: vec![(place, true)],
            new,
            first: 0,
        }
    }

    /// Returns lines of the new text, which are in one of the places.
    pub(crate) fn new_lines(&self, lines: Range<usize>) -> &[&'a [u8]] {
        &self.new[lines.start - self.first..lines.end - self.first]
    }

    /// Returns whether a line of the new text is not in the old one.
    pub(crate) fn is_added(&self, line: usize) -> bool {
        let next = self
            .places
            .partition_point(|((_, after), _)| after.end <= line);
        let next = self.places.get(next);
        next.is_some_and(|((_, after), _)| after.contains(&line))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_at_the_beginning_and_the_end_are_cut_off() {
        let of = |old: &'static str, new: &'static str| {
            let middle = Middle::of(old.as_bytes(), new.as_bytes());
            let text = |bytes| std::str::from_utf8(bytes).unwrap();
            (
                middle.first,
                text(middle.old),
                text(middle.new),
                middle.last,
            )
        };
        assert_eq!(of("a\nb\nc\n", "a\nB\nc\n"), (1, "b\n", "B\n", 1));
        assert_eq!(of("a\nb\n", "a\nb\n"), (2, "", "", 0));
        assert_eq!(of("a\nb", "a\nb"), (2, "", "", 0));
        assert_eq!(of("a\nb", "a\nb\n"), (1, "b", "b\n", 0));
        assert_eq!(of("ab\nz\n", "cb\nz\n"), (0, "ab\n", "cb\n", 1));
        assert_eq!(of("b\nz\n", "b\nb\nz\n"), (1, "", "b\n", 1));
        assert_eq!(of("z\n", "a\nz\n"), (0, "", "a\n", 1));
        assert_eq!(of("z\n", "az\n"), (0, "z\n", "az\n", 0));
        assert_eq!(of("", "a\n"), (0, "", "a\n", 0));
    }
}
