//! Where the changes of two worktrees meet, line by line.

use std::borrow::Cow;
use std::ops::Range;

use touchmark_engine::Hunk;
use touchmark_engine::text::lines;

/// Lines, counted from 0. An empty range is the place before a line.
pub(super) type Lines = Range<u32>;

/// The lines of the own content that count.
#[derive(Clone, Debug)]
pub(super) enum Mine {
    /// All changed lines.
    All,
    /// The lines that one edit writes, and the places where it removes some.
    Edit(Vec<Lines>),
}

impl Mine {
    /// Returns what an edit changes. `None` if the contents cannot be compared.
    pub(super) fn of_edit(before: &[u8], after: &[u8]) -> Option<Self> {
        let hunks = lines::places(&plain(before), &plain(after))?;
        Some(Self::Edit(hunks.iter().map(new).collect()))
    }

    fn has(&self, lines: &Lines) -> bool {
        match self {
            Self::All => true,
            Self::Edit(edits) => edits.iter().any(|edit| touch(edit, lines)),
        }
    }
}

/// A place that both worktrees have changed, each in another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    /// The lines of the common content that the other worktree has changed.
    pub(super) base: Lines,
    /// The lines in the other worktree's content.
    pub(super) theirs: Lines,
    /// The lines in the own content.
    pub(super) own: Lines,
}

/// Returns where two contents that come from `base` have both changed it, in
/// order. Changes in the same way do not count. Changes of adjacent lines do,
/// since they cannot be merged either. Line ends do not count. `None` if the
/// contents cannot be compared: they are binary or too large.
pub(super) fn clashes(base: &[u8], own: &[u8], theirs: &[u8], mine: &Mine) -> Option<Vec<Clash>> {
    let [base, own, theirs] = [plain(base), plain(own), plain(theirs)];
    if own == theirs {
        return Some(Vec::new());
    }
    let (by_own, by_theirs) = (lines::places(&base, &own)?, lines::places(&base, &theirs)?);
    let mut found = Vec::new();
    for other in &by_theirs {
        let meets = by_own.iter().filter(|hunk| {
            touch(&old(hunk), &old(other))
                && mine.has(&new(hunk))
                && !is_same((hunk, &own), (other, &theirs))
        });
        let joined = meets.map(new).reduce(|one, next| one.start..next.end);
        found.extend(joined.map(|own| Clash {
            base: old(other),
            theirs: new(other),
            own,
        }));
    }
    Some(found)
}

/// Returns a text with all its line ends as line feeds: git may convert them
/// when it writes a file.
pub(super) fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.windows(2).any(|pair| pair == b"\r\n") {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if *byte != b'\r' || text.get(at + 1) != Some(&b'\n') {
            plain.push(*byte);
        }
    }
    Cow::Owned(plain)
}

fn old(hunk: &Hunk) -> Lines {
    let start = hunk.old_start.saturating_sub(1);
    start..start + hunk.old_lines
}

fn new(hunk: &Hunk) -> Lines {
    let start = hunk.new_start.saturating_sub(1);
    start..start + hunk.new_lines
}

/// Returns whether two places overlap or are adjacent.
fn touch(one: &Lines, other: &Lines) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Returns whether two changes of a base replace the same lines by the same
/// lines.
fn is_same((one, in_one): (&Hunk, &[u8]), (other, in_other): (&Hunk, &[u8])) -> bool {
    old(one) == old(other) && text(in_one, &new(one)) == text(in_other, &new(other))
}

/// Returns some lines of a text.
pub(super) fn text<'a>(text: &'a [u8], lines: &Lines) -> Vec<&'a [u8]> {
    let count = (lines.end - lines.start) as usize;
    let all = text.split_inclusive(|byte| *byte == b'\n');
    all.skip(lines.start as usize).take(count).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]
    use super::*;

    const BASE: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n";

    fn found(own: &str, theirs: &str) -> Vec<(Lines, Lines)> {
        clashes(BASE, own.as_bytes(), theirs.as_bytes(), &Mine::All)
            .unwrap()
            .into_iter()
            .map(|clash| (clash.base, clash.theirs))
            .collect()
    }

    #[test]
    fn the_same_and_adjacent_lines_meet() {
        let theirs = "1\nB\n3\n4\n5\n6\n7\n8\n";
        assert_eq!(found("1\nA\n3\n4\n5\n6\n7\n8\n", theirs), [(1..2, 1..2)]);
        assert_eq!(found("1\n2\nA\n4\n5\n6\n7\n8\n", theirs), [(1..2, 1..2)]);
        assert_eq!(found("1\n2\n3\n4\n5\nA\n7\n8\n", theirs), []);
        // An insertion before and after the line.
        assert_eq!(found("1\nA\n2\n3\n4\n5\n6\n7\n8\n", theirs), [(1..2, 1..2)]);
        assert_eq!(found("A\n1\n2\n3\n4\n5\n6\n7\n8\n", theirs), []);
    }

    #[test]
    fn the_same_change_does_not_meet() {
        let theirs = "1\nB\n3\n4\n5\n6\n7\n8\n";
        assert_eq!(found(theirs, theirs), []);
        // Another change elsewhere does not matter.
        assert_eq!(found("1\nB\n3\n4\n5\n6\n7\nA\n", theirs), []);
    }

    #[test]
    fn a_removed_file_meets_every_change() {
        assert_eq!(found("1\nA\n3\n4\n5\n6\n7\n8\n", ""), [(0..8, 0..0)]);
    }

    #[test]
    fn an_edit_meets_only_at_its_own_lines() {
        let before = b"1\nA\n3\n4\n5\n6\n7\n8\n";
        let after = b"1\nA\n3\n4\n5\n6\nC\n8\n";
        let theirs = b"1\nB\n3\n4\n5\n6\nB\n8\n";
        let mine = Mine::of_edit(before, after).unwrap();
        let found = clashes(BASE, after, theirs, &mine).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].base, 6..7);
        // A line that is removed.
        let after = b"1\nA\n3\n4\n5\n6\n8\n";
        let mine = Mine::of_edit(before, after).unwrap();
        let found = clashes(BASE, after, theirs, &mine).unwrap();
        assert_eq!(found[0].base, 6..7);
    }

    #[test]
    fn line_ends_do_not_count() {
        let theirs = "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n";
        assert_eq!(found("1\nA\n3\n4\n5\n6\n7\n8\n", theirs), []);
        assert_eq!(plain(b"a\r\nb\rc\n").as_ref(), b"a\nb\rc\n");
    }

    #[test]
    fn binary_contents_are_not_compared() {
        assert_eq!(clashes(BASE, b"\0", b"x", &Mine::All), None);
    }
}
