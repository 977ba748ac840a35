//! Counts and compares the lines of two contents, and returns the first
//! characters of one.

use std::ops::Range;

use touchmark_proto::{Hash, LineCounts, LineRange};

use super::differences::{Differences, Middle};

/// The maximum number of bytes of a content that are compared, without the equal
/// lines at the beginning and at the end, so that one answer takes a few
/// milliseconds at most.
pub const MAX_BYTES: usize = 1 << 20;

/// A NUL byte among this number of first bytes makes a content binary, as in
/// git.
const BINARY_PROBE: usize = 8_000;

/// The number of characters of a preview.
const PREVIEW_CHARS: usize = 200;

/// An older and a newer content of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPair {
    /// The older content.
    pub old: Hash,
    /// The newer content.
    pub new: Hash,
}

/// The result of comparing two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The two texts that were compared.
    pub pair: TextPair,
    /// The number of lines of the older text.
    pub old_lines: u32,
    /// The places where the texts differ, in order.
    pub hunks: Vec<Hunk>,
}

/// One place where two texts differ. Lines count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first line of the older text here. If the older text has none here,
    /// the line before which the newer text has additional ones.
    pub old_start: u32,
    /// The number of lines of the older text here.
    pub old_lines: u32,
    /// The first line of the newer text here, counted as `old_start`.
    pub new_start: u32,
    /// The number of lines of the newer text here.
    pub new_lines: u32,
}

/// Returns the lines added and removed between two contents, as `git diff
/// --numstat` counts them: a line differs also if only its line ending does. An
/// absent file counts as empty. Returns `None` for binary contents, for those
/// that differ in more than [`MAX_BYTES`], and for those that repeat the same
/// lines so often that comparing them would take long.
pub fn count(old: &[u8], new: &[u8]) -> Option<LineCounts> {
    let found = compare(old, new)?;
    let places = || found.places.iter().map(|(place, _)| place);
    Some(LineCounts {
        added: number(places().map(|(_, after)| after.len()).sum()),
        removed: number(places().map(|(before, _)| before.len()).sum()),
    })
}

/// Returns where two contents differ, in order, or `None` if [`count`] returns
/// `None`.
pub fn difference(pair: TextPair, old: &[u8], new: &[u8]) -> Option<Difference> {
    let found = compare(old, new)?;
    Some(Difference {
        pair,
        old_lines: number(found.old_lines),
        hunks: hunks(&found),
    })
}

/// Returns the places where two contents differ, in order, or `None` if
/// [`count`] returns `None`.
pub fn places(old: &[u8], new: &[u8]) -> Option<Vec<Hunk>> {
    compare(old, new).map(|found| hunks(&found))
}

/// As [`places`], however much the contents differ; `None` for binary ones. It
/// may take too long for a thread that others wait for.
pub fn all_places(old: &[u8], new: &[u8]) -> Option<Vec<Hunk>> {
    let is_text = !is_binary(old) && !is_binary(new);
    is_text.then(|| hunks(&Differences::of(&Middle::of(old, new))))
}

fn hunks(found: &Differences<'_>) -> Vec<Hunk> {
    let hunks = found.places.iter().map(|((before, after), _)| Hunk {
        old_start: number(before.start + 1),
        old_lines: number(before.len()),
        new_start: number(after.start + 1),
        new_lines: number(after.len()),
    });
    hunks.collect()
}

/// Returns the lines of the older content that the newer one does not have,
/// counted in the older one, or `None` if [`count`] returns `None`.
pub fn removed(old: &[u8], new: &[u8]) -> Option<Vec<LineRange>> {
    let found = compare(old, new)?;
    Some(ranges(found.places.iter().map(|((before, _), _)| before)))
}

/// Returns the lines of the newer content that the older one does not have,
/// counted in the newer one, or `None` if [`count`] returns `None`.
pub fn added(old: &[u8], new: &[u8]) -> Option<Vec<LineRange>> {
    let found = compare(old, new)?;
    Some(ranges(found.places.iter().map(|((_, after), _)| after)))
}

/// Returns ranges of indices as lines, without the empty ones.
fn ranges<'a>(indices: impl Iterator<Item = &'a Range<usize>>) -> Vec<LineRange> {
    let lines = indices
        .filter(|lines| !lines.is_empty())
        .map(|lines| LineRange {
            start: number(lines.start + 1),
            end: number(lines.end),
        });
    lines.collect()
}

/// Returns where two contents differ. Returns `None` if [`count`] does.
fn compare<'a>(old: &'a [u8], new: &'a [u8]) -> Option<Differences<'a>> {
    if is_binary(old) || is_binary(new) {
        return None;
    }
    let middle = Middle::of(old, new);
    if middle.old.len().max(middle.new.len()) > MAX_BYTES {
        return None;
    }
    let found = Differences::of(&middle);
    let is_compared = found.places.iter().all(|(_, is_compared)| *is_compared);
    is_compared.then_some(found)
}

/// Converts a line number or a number of lines. Texts have less than 2^32 lines.
fn number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Returns the lines of a writer that were taken back: the writer changed
/// `base` to `mine`, and in their place `now` has again what `base` had. Lines
/// are counted in `mine`. Returns no lines for contents that [`count`] does not
/// compare.
pub fn taken_back(base: &[u8], mine: &[u8], now: &[u8]) -> Vec<LineRange> {
    let compared = [(base, mine), (mine, now), (base, now)];
    let [Some(written), Some(since), Some(all)] = compared.map(|(old, new)| compare(old, new))
    else {
        return Vec::new();
    };
    let places = since.places.iter().map(|(place, _)| place);
    let back = places
        .filter(|(_, after)| after.clone().all(|line| !all.is_added(line)))
        .flat_map(|(before, _)| before.clone())
        .filter(|line| written.is_added(*line))
        .map(number);
    let mut ranges: Vec<LineRange> = Vec::new();
    for line in back.map(|line| line + 1) {
        match ranges.last_mut() {
            Some(last) if last.end + 1 == line => last.end = line,
            _ => ranges.push(LineRange {
                start: line,
                end: line,
            }),
        }
    }
    ranges
}

/// Returns whether a content is binary, as git decides it.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(BINARY_PROBE)].contains(&0)
}

/// Returns the first 200 characters. Bytes that are not UTF-8 are replaced.
/// Control characters stay.
pub fn preview(bytes: &[u8]) -> String {
    // No character has more than four bytes, so a character that this bound
    // cuts in two is never among the first 200.
    let enough = &bytes[..bytes.len().min(PREVIEW_CHARS * 4)];
    String::from_utf8_lossy(enough)
        .chars()
        .take(PREVIEW_CHARS)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn counted(old: &[u8], new: &[u8]) -> (u32, u32) {
        let lines = count(old, new).unwrap();
        (lines.added, lines.removed)
    }

    #[test]
    fn lines_of_an_edit_that_were_taken_back() {
        let of = |base: &str, mine: &str, now: &str| {
            taken_back(base.as_bytes(), mine.as_bytes(), now.as_bytes())
                .iter()
                .map(|range| (range.start, range.end))
                .collect::<Vec<_>>()
        };
        let base = "a\nb\nc\nd\ne\nf\n";
        let mine = "a\nB\nc\nd\nE1\nE2\nf\nnew\n";
        assert_eq!(of(base, mine, mine), []);
        assert_eq!(of(base, mine, base), [(2, 2), (5, 6), (8, 8)]);
        assert_eq!(of(base, mine, "a\nb\nc\nd\nE1\nE2\nf\nnew\n"), [(2, 2)]);
        assert_eq!(of(base, mine, "a\nB\nc\nd\nE1\nE2\nf\n"), [(8, 8)]);
        // The user has changed other lines as well.
        let and_more = "mine\na\nb\nc\nd\nE1\nE2\nf\nnew\n";
        assert_eq!(of(base, mine, and_more), [(2, 2)]);
        // Lines that were changed to a third text were not taken back.
        assert_eq!(of(base, mine, "a\nthird\nc\nd\nE1\nE2\nf\nnew\n"), []);
        assert_eq!(of(base, mine, "a\nB\nd\nE1\nE2\nf\nnew\n"), []);
    }

    #[test]
    fn lines_are_counted_as_git_counts_them() {
        assert_eq!(counted(b"", b""), (0, 0));
        assert_eq!(counted(b"", b"a\nb\n"), (2, 0));
        assert_eq!(counted(b"a\nb\n", b""), (0, 2));
        assert_eq!(counted(b"a\nb\nc\n", b"a\nB\nc\nd\n"), (2, 1));
        assert_eq!(counted(b"a", b"a\n"), (1, 1), "the line ending is content");
        assert_eq!(counted(b"a\r\n", b"a\n"), (1, 1));
        assert_eq!(counted(b"\xff\n", b"\xfe\n"), (1, 1), "not UTF-8, but text");
    }

    #[test]
    fn lines_that_are_gone_have_their_old_numbers() {
        let of = |old: &[u8], new: &[u8]| -> Vec<(u32, u32)> {
            let ranges = removed(old, new).unwrap().into_iter();
            ranges.map(|range| (range.start, range.end)).collect()
        };
        assert_eq!(of(b"a\nb\nc\n", b"a\nB\nc\n"), [(2, 2)]);
        assert_eq!(of(b"a\nb\nc\nd\n", b"c\n"), [(1, 2), (4, 4)]);
        assert_eq!(of(b"a\n", b"x\na\n"), []);
    }

    #[test]
    fn binary_and_large_contents_have_no_counts() {
        assert_eq!(count(b"a\n", b"a\0\n"), None);
        assert_eq!(count(b"\0", b"a\n"), None);
        let large = vec![b'\n'; MAX_BYTES + 1];
        assert_eq!(count(&large, b""), None);
        assert!(count(&large[1..], b"").is_some());
    }

    #[test]
    fn comparing_is_bounded_by_its_effort_not_by_size() {
        let numbered = |name: &str| -> Vec<String> {
            (0..50_000).map(|line| format!("{name}{line}\n")).collect()
        };
        let old = numbered("a");
        let bytes = |lines: &[String]| lines.concat().into_bytes();

        // Edits all over a long text, including its first and its last line.
        let mut edited = old.clone();
        for line in (0..50_000).step_by(101).chain([49_999]) {
            edited[line] = "edited\n".into();
        }
        assert_eq!(counted(&bytes(&old), &bytes(&edited)), (497, 497));
        // A completely different text.
        let other = bytes(&numbered("b"));
        assert_eq!(counted(&bytes(&old), &other), (50_000, 50_000));
        // A few lines repeated many times.
        let repeated = |lines: &[u8]| lines.repeat(60_000);
        assert_eq!(
            counted(&repeated(b"x\ny\n"), &repeated(b"y\nz\nx\n")),
            (60_001, 1)
        );
        // Without order: a comparison would take half a minute.
        let mut state = 1_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            format!("{}\n", (state >> 33) % 1_000)
        };
        let mut mixed: Vec<String> = (0..60_000).map(next).collect();
        let first = bytes(&mixed);
        mixed.reverse();
        assert_eq!(count(&first, &bytes(&mixed)), None);
    }

    #[test]
    fn previews_are_characters_not_bytes() {
        assert_eq!(preview(b""), "");
        assert_eq!(preview(b"a\t\x07\n"), "a\t\x07\n");
        assert_eq!(preview("é".repeat(500).as_bytes()), "é".repeat(200));
        for lead in ["", "a", "ab", "€", "é"] {
            let text = format!("{lead}{}", "🦀".repeat(300));
            let expected: String = text.chars().take(200).collect();
            assert_eq!(preview(text.as_bytes()), expected);
        }
        assert_eq!(preview(b"a\xffb"), "a\u{fffd}b");
    }
}
