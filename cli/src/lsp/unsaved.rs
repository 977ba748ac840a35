//! Which lines of the saved file the unsaved changes affect: those between the
//! lines that are the same at the beginning and at the end.

use touchmark_client::proto::LineRange;

/// The lines that unsaved changes leave as they are, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// Lines that are the same at the beginning.
    above: u32,
    /// Lines that are the same at the end.
    below: u32,
    /// Lines of the saved file.
    saved: u32,
    /// Lines of the text.
    now: u32,
}

impl Edit {
    /// Compares the text with that of the saved file. `None` if they are the
    /// same.
    pub(super) fn between(saved: &str, now: &str) -> Option<Self> {
        if saved == now {
            return None;
        }
        let number = |lines: usize| u32::try_from(lines).unwrap_or(u32::MAX);
        let lines = |text: &str| text.split_inclusive('\n').count();
        let (of_saved, of_now) = (lines(saved), lines(now));
        let (a, b) = (saved.split_inclusive('\n'), now.split_inclusive('\n'));
        let above = a.zip(b).take_while(|(a, b)| a == b).count();
        let (a, b) = (saved.split_inclusive('\n'), now.split_inclusive('\n'));
        let same = a.rev().zip(b.rev()).take_while(|(a, b)| a == b).count();
        let below = same.min(of_saved - above).min(of_now - above);
        Some(Self {
            above: number(above),
            below: number(below),
            saved: number(of_saved),
            now: number(of_now),
        })
    }

    /// Returns the lines of the saved file that are affected. If lines are only
    /// added: those before and after them.
    pub(super) fn lines(&self) -> LineRange {
        let (mut first, mut last) = (self.above + 1, self.saved - self.below);
        if last < first {
            (first, last) = (self.above, self.above + 1);
        }
        let start = first.min(self.saved).max(1);
        let end = last.min(self.saved).max(start);
        LineRange { start, end }
    }

    /// Returns the line of the saved file that a line of the text is; `None` if
    /// it may have changed. Both from 1.
    pub(super) fn saved(&self, line: u32) -> Option<u32> {
        through(line, self.above, self.below, self.now, self.saved)
    }

    /// Returns the line of the text that a line of the saved file is; `None` if
    /// it may have changed. Both from 1.
    pub(super) fn shown(&self, line: u32) -> Option<u32> {
        through(line, self.above, self.below, self.saved, self.now)
    }
}

fn through(line: u32, above: u32, below: u32, of: u32, to: u32) -> Option<u32> {
    if line <= above {
        return Some(line);
    }
    (line > of - below).then(|| (line + to).saturating_sub(of))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn lines(saved: &str, now: &str) -> Option<(u32, u32)> {
        let edit = Edit::between(saved, now)?;
        let LineRange { start, end } = edit.lines();
        Some((start, end))
    }

    #[test]
    fn the_lines_are_those_that_differ() {
        assert_eq!(lines("a\nb\nc\n", "a\nb\nc\n"), None);
        assert_eq!(lines("a\nb\nc\n", "a\nB\nc\n"), Some((2, 2)));
        assert_eq!(lines("a\nb\nc\nd\n", "a\nd\n"), Some((2, 3)));
        assert_eq!(lines("a\nb\n", "x\ny\nz\n"), Some((1, 2)));
    }

    #[test]
    fn lines_that_are_added_are_named_by_their_neighbours() {
        assert_eq!(lines("a\nb\n", "a\nnew\nb\n"), Some((1, 2)));
        assert_eq!(lines("a\nb\n", "new\na\nb\n"), Some((1, 1)));
        assert_eq!(lines("a\nb\n", "a\nb\nnew\n"), Some((2, 2)));
        assert_eq!(lines("", "new\n"), Some((1, 1)));
        // Repeated lines count once.
        assert_eq!(lines("a\na\n", "a\na\na\n"), Some((2, 2)));
    }

    #[test]
    fn lines_outside_of_an_edit_have_their_counterpart() {
        let edit = Edit::between("a\nb\nc\nd\n", "a\nx\ny\nz\nd\n").unwrap();
        assert_eq!(
            [1, 2, 4, 5].map(|line| edit.saved(line)),
            [Some(1), None, None, Some(4)]
        );
        assert_eq!(
            [1, 2, 3, 4].map(|line| edit.shown(line)),
            [Some(1), None, None, Some(5)]
        );
    }
}
