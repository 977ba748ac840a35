//! Whether a tool would destroy what a session has not seen (HOOK-4): by where
//! the file differs from what the session saw, and where it will differ from
//! what it is now.

use std::fmt::Write as _;

use touchmark_engine::Hunk;
use touchmark_proto::LineRange;
use touchmark_proto::quoting::escaped;

/// Places of one file that are shown at most.
const PLACES: usize = 8;

/// Lines of them.
const LINES: usize = 24;

/// Characters of one line.
const WIDTH: usize = 160;

/// Whether some of what has changed would be changed again. Both count lines
/// of the text as it is now: `changed` says what came into it, `edit` what will
/// be taken out.
pub(super) fn overlaps(changed: &[Hunk], edit: &[Hunk]) -> bool {
    changed.iter().any(|came| {
        edit.iter().any(|goes| {
            let (came_end, goes_end) = (
                came.new_start + came.new_lines,
                goes.old_start + goes.old_lines,
            );
            match (came.new_lines, goes.old_lines) {
                // Lines were taken out where lines will be put in: they may be
                // the same.
                (0, 0) => came.new_start == goes.old_start,
                (0, _) => {
                    let inside = goes.old_start < came.new_start && came.new_start < goes_end;
                    let at_an_end = [goes.old_start, goes_end].contains(&came.new_start);
                    inside || at_an_end && goes.new_lines > goes.old_lines
                }
                // In the middle of what came.
                (_, 0) => came.new_start < goes.old_start && goes.old_start < came_end,
                _ => came.new_start < goes_end && goes.old_start < came_end,
            }
        })
    })
}

/// The lines of a text at the places where it has changed: around the seam
/// where lines were taken out.
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

/// The lines that an edit takes out, or between which it puts others: whoever
/// named them knows them.
pub(super) fn touched(edit: &[Hunk], lines: u32) -> Vec<LineRange> {
    let as_new = |hunk: &Hunk| Hunk {
        new_start: hunk.old_start,
        new_lines: hunk.old_lines,
        ..*hunk
    };
    let edit: Vec<Hunk> = edit.iter().map(as_new).collect();
    places(&edit, lines)
}

/// Lines to be shown to a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// With their numbers, each on a line of its own.
    pub(super) text: String,
    /// Which.
    pub(super) lines: Vec<LineRange>,
    /// There are more places.
    pub(super) more: bool,
}

/// Shows some lines of a text, within bounds.
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
    use crate::lines;

    /// What a person would say: whether a line that came, or the place of one
    /// that went, is no more as it is.
    fn destroys(seen: &str, now: &str, will_be: &str) -> bool {
        let changed = lines::places(seen.as_bytes(), now.as_bytes()).unwrap();
        let edit = lines::places(now.as_bytes(), will_be.as_bytes()).unwrap();
        overlaps(&changed, &edit)
    }

    #[test]
    fn an_edit_beside_a_change_destroys_nothing() {
        let seen = "a\nb\nc\nd\ne\n";
        for (now, will_be) in [
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nD\ne\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nC\nd\ne\n"),
            ("new\na\nb\nc\nd\ne\n", "new\nA\nb\nc\nd\ne\n"),
            ("a\nc\nd\ne\n", "a\nC\nd\ne\n"),
            ("a\nc\nd\ne\n", "A\nc\nd\ne\n"),
            ("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nE\nf\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nmore\nc\nd\ne\n"),
            ("a\nB\nc\nd\ne\n", "a\nB\nc\nd\ne\n"),
        ] {
            assert!(!destroys(seen, now, will_be), "{now:?} {will_be:?}");
        }
    }

    #[test]
    fn an_edit_of_what_has_changed_does() {
        let seen = "a\nb\nc\nd\ne\n";
        for (now, will_be) in [
            ("a\nB\nc\nd\ne\n", "a\nx\nc\nd\ne\n"),
            ("a\nB\nc\nd\ne\n", "x\n"),
            ("a\nB\nc\nd\ne\n", seen),
            ("a\nc\nd\ne\n", "x\ny\nd\ne\n"),
            // The lines that were taken out come back.
            ("a\nc\nd\ne\n", "a\nb\nc\nd\ne\n"),
            ("a\nc\nd\ne\n", "a\nb\nC\nd\ne\n"),
            ("a\nb\nc\nd\n", "a\nb\nc\nD\ne\n"),
            (
                "a\nb\nnew\nnewer\nc\nd\ne\n",
                "a\nb\nnew\nx\nnewer\nc\nd\ne\n",
            ),
        ] {
            assert!(destroys(seen, now, will_be), "{now:?} {will_be:?}");
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
