//! Whether a tool would destroy what a session has not seen (HOOK-4). This is
//! decided by two comparisons: of the file with what the session saw, and of
//! the file's future content with its current one.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use touchmark_engine::Hunk;
use touchmark_proto::LineRange;
use touchmark_proto::quoting::escaped;

/// The maximum number of places of one file that are shown.
const PLACES: usize = 8;

/// The maximum number of lines of these places.
const LINES: usize = 24;

/// The maximum length of one line, in characters.
const WIDTH: usize = 160;

/// A text as a session saw it and as it will be after an edit, with the
/// differences to its current content.
pub(super) struct Texts<'a> {
    pub(super) seen: &'a [u8],
    pub(super) result: &'a [u8],
    /// The differences of the current text from the one that was seen.
    pub(super) changed: &'a [Hunk],
    /// The differences of the future text from the current one.
    pub(super) edit: &'a [Hunk],
}

impl Texts<'_> {
    /// Returns whether the edit removes lines that the session has not seen, or
    /// brings back lines that were removed since.
    pub(super) fn destroy(&self) -> bool {
        let goes = |came: &Hunk| {
            let until = came.new_start + came.new_lines;
            let mut edit = self.edit.iter().filter(|hunk| hunk.old_lines > 0);
            edit.any(|goes| {
                came.new_start < goes.old_start + goes.old_lines && goes.old_start < until
            })
        };
        let mut came = self.changed.iter().filter(|hunk| hunk.new_lines > 0);
        came.any(goes) || self.bring_back()
    }

    fn bring_back(&self) -> bool {
        let went = self.changed.iter().filter(|hunk| hunk.old_lines > 0);
        let went = of(self.seen, went.map(|hunk| (hunk.old_start, hunk.old_lines)));
        let comes = self.edit.iter().filter(|hunk| hunk.new_lines > 0);
        let comes = of(
            self.result,
            comes.map(|hunk| (hunk.new_start, hunk.new_lines)),
        );
        went.iter()
            .filter(|line| says(line))
            .any(|line| comes.contains(line))
    }
}

/// Returns the differences without those whose new lines a model quotes in full.
/// It knows these lines, wherever it has them from.
pub(super) fn unquoted(changed: Vec<Hunk>, text: &str, quotes: &[&str]) -> Vec<Hunk> {
    let quoted: BTreeSet<&str> = quotes.iter().flat_map(|quote| quote.lines()).collect();
    let lines: Vec<&str> = text.lines().collect();
    let is_quoted = |hunk: &Hunk| {
        let first = hunk.new_start.saturating_sub(1) as usize;
        let new = lines.iter().skip(first).take(hunk.new_lines as usize);
        let mut said = new.filter(|line| says(line.as_bytes())).peekable();
        said.peek().is_some() && said.all(|line| quoted.contains(line))
    };
    let changed = changed.into_iter();
    changed.filter(|hunk| !is_quoted(hunk)).collect()
}

/// Returns whether a line has a letter or a digit. Blank lines and brackets occur
/// everywhere, so they show nothing.
pub(super) fn says(line: &[u8]) -> bool {
    line.iter().any(u8::is_ascii_alphanumeric)
}

/// Returns some lines of a text, without their line ends.
fn of(text: &[u8], places: impl Iterator<Item = (u32, u32)>) -> BTreeSet<&[u8]> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    places
        .flat_map(|(start, count)| (start..start + count).map(|line| line as usize - 1))
        .filter_map(|index| lines.get(index).copied())
        .collect()
}

/// Returns the lines of a text at the places where it has changed. Where lines
/// were removed, these are the lines around the place.
pub(super) fn places(changed: &[Hunk], lines: u32) -> Vec<LineRange> {
    let mut places: Vec<LineRange> = Vec::new();
    for hunk in changed {
        let (start, end) = match hunk.new_lines {
            0 => (hunk.new_start.saturating_sub(1), hunk.new_start),
            count => (hunk.new_start, hunk.new_start + (count - 1)),
        };
        let (start, end) = (start.max(1), end.min(lines));
        match places.last_mut() {
            _ if start > end => {}
            Some(last) if start <= last.end + 1 => last.end = last.end.max(end),
            _ => places.push(LineRange { start, end }),
        }
    }
    places
}

/// Returns the lines that an edit removes, or between which it inserts. An edit
/// that names lines proves that they are known.
pub(super) fn touched(edit: &[Hunk], lines: u32) -> Vec<LineRange> {
    let as_new = |hunk: &Hunk| Hunk {
        new_start: hunk.old_start,
        new_lines: hunk.old_lines,
        ..*hunk
    };
    let edit: Vec<Hunk> = edit.iter().map(as_new).collect();
    places(&edit, lines)
}

/// Lines that are shown to a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The lines with their numbers.
    pub(super) text: String,
    /// The ranges of these lines.
    pub(super) lines: Vec<LineRange>,
    /// Whether more places have changed.
    pub(super) more: bool,
}

/// Returns some lines of a text, within the limits.
pub(super) fn shown(text: &str, places: &[LineRange]) -> Shown {
    let all: Vec<&str> = text.lines().collect();
    let mut shown = Shown {
        text: String::new(),
        lines: Vec::new(),
        more: false,
    };
    let mut room = LINES;
    for (index, place) in places.iter().enumerate() {
        let wanted = (place.end - place.start + 1) as usize;
        if index == PLACES || room == 0 {
            shown.more = true;
            break;
        }
        let count = wanted.min(room);
        shown.more |= count < wanted;
        room -= count;
        let first = place.start as usize - 1;
        for (number, line) in (place.start..).zip(all.iter().skip(first).take(count)) {
            let _ = write!(shown.text, "\n{number}: {}", escaped(line, WIDTH));
        }
        let end = place.start + u32::try_from(count).unwrap_or(u32::MAX) - 1;
        shown.lines.push(LineRange {
            start: place.start,
            end,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use touchmark_engine::text::lines;

    fn destroys(seen: &str, now: &str, result: &str) -> bool {
        let [seen, now, result] = [seen, now, result].map(str::as_bytes);
        let texts = Texts {
            seen,
            result,
            changed: &lines::places(seen, now).unwrap(),
            edit: &lines::places(now, result).unwrap(),
        };
        texts.destroy()
    }

    #[test]
    fn an_edit_beside_a_change_destroys_nothing() {
        let seen = "a\nb\nc\nd\ne\n";
        for (now, result) in [
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nD\ne\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nC\nd\ne\n"),
            ("new\na\nb\nc\nd\ne\n", "new\nA\nb\nc\nd\ne\n"),
            ("a\nc\nd\ne\n", "a\nC\nd\ne\n"),
            ("a\nc\nd\ne\n", "a\nC\nD\nd\ne\n"),
            ("a\nc\nd\ne\n", "x\ny\nd\ne\n"),
            ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nmore\nc\nd\ne\n"),
            ("a\nb\nB\nC\nc\nd\ne\n", "a\nb\nB\nx\nC\nc\nd\ne\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n"),
        ] {
            assert!(!destroys(seen, now, result), "{now:?} {result:?}");
        }
    }

    #[test]
    fn an_edit_of_what_has_changed_does() {
        let seen = "a\nb\nc\nd\ne\n";
        for (now, result) in [
            ("a\nB\nc\nd\ne\n", "a\nx\nc\nd\ne\n"),
            ("a\nB\nc\nd\ne\n", "x\n"),
            ("a\nB\nc\nd\ne\n", seen),
            ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\n"),
            // The lines that were removed come back.
            ("a\nc\nd\ne\n", seen),
            ("a\nc\nd\ne\n", "a\nb\nC\nd\ne\n"),
            ("a\nb\nc\nd\n", "a\nb\nc\nD\ne\n"),
        ] {
            assert!(destroys(seen, now, result), "{now:?} {result:?}");
        }
    }

    #[test]
    fn places_are_the_lines_that_came_or_lie_around_what_went() {
        let of = |seen: &str, now: &str| -> Vec<(u32, u32)> {
            let changed = lines::places(seen.as_bytes(), now.as_bytes()).unwrap();
            let count = u32::try_from(now.lines().count()).unwrap();
            let places = places(&changed, count).into_iter();
            places.map(|place| (place.start, place.end)).collect()
        };
        assert_eq!(of("a\nb\nc\n", "a\nB\nc\n"), [(2, 2)]);
        assert_eq!(of("a\nb\nc\n", "a\nc\n"), [(1, 2)]);
        assert_eq!(of("a\nb\nc\n", "a\nb\n"), [(2, 2)]);
        assert_eq!(of("a\nb\nc\n", "b\nc\n"), [(1, 1)]);
        assert_eq!(of("a\n", ""), []);
    }

    #[test]
    fn what_is_shown_is_bounded_and_says_so() {
        let text = "line\n".repeat(100);
        let place = |start, end| LineRange { start, end };
        let few = shown("a\nb\u{202e}\nc", &[place(2, 2)]);
        assert_eq!(few.text, "\n2: b\\u202e");
        assert!(!few.more);
        let long = shown(&text, &[place(1, 100)]);
        assert_eq!(long.lines, [place(1, 24)]);
        assert!(long.more);
        let places: Vec<LineRange> = (1..=9).map(|n| place(2 * n, 2 * n)).collect();
        let many = shown(&text, &places);
        assert_eq!((many.lines.len(), many.more), (8, true));
    }
}
