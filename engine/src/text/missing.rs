//! The lines of a version of a text that a newer text lacks, and putting them
//! back without taking anything away (ATTR-10).
//!
//! Lines are compared without the form of the file. A line that has moved is
//! not missing.

use std::collections::BTreeMap;

use imara_diff::Algorithm;
use touchmark_proto::LineRange;

use super::align::Aligned;
use super::form::{Form, plain};
use super::lines::{MAX_BYTES, is_binary};
use crate::ranges::RangeSet;

/// A content, of which a session has seen some lines.
#[derive(Clone, Copy, Debug)]
pub struct SeenText<'a> {
    /// The content.
    pub text: &'a [u8],
    /// The lines of it that were seen.
    pub lines: &'a RangeSet,
}

/// Returns the lines of `version` that are in none of the texts that were seen,
/// and that each of the `later` texts lacks. They are counted in `version`. If
/// they are blank, nothing is missing. Returns `None` for contents that are no
/// texts or too large to be compared.
pub fn missing(seen: &[SeenText<'_>], version: &[u8], later: &[&[u8]]) -> Option<Vec<LineRange>> {
    let version = text(version)?;
    let lines = lines(&version);
    let mut wanted = vec![true; lines.len()];
    for one in seen {
        let text = text(one.text)?;
        let was_seen = |at: usize| !one.lines.between(number(at), number(at)).is_empty();
        leave_out(&self::lines(&text), &lines, &mut wanted, was_seen);
    }
    for text in later {
        let text = self::text(text)?;
        leave_out_present(&self::lines(&text), &lines, &mut wanted);
    }
    let gone = || (0..lines.len()).filter(|at| wanted[*at]);
    let mut found: Vec<LineRange> = Vec::new();
    if gone().all(|at| lines[at].trim().is_empty()) {
        return Some(found);
    }
    for line in gone().map(number) {
        match found.last_mut() {
            Some(last) if last.end + 1 == line => last.end = line,
            _ => found.push(LineRange {
                start: line,
                end: line,
            }),
        }
    }
    Some(found)
}

/// Adds some lines of `version` to `now`, each at its place, in the form that
/// `now` has. Returns `None` for contents that are no texts, and for lines that
/// the encoding of `now` lacks characters for.
pub fn put_back(version: &[u8], missing: &[LineRange], now: &[u8]) -> Option<Vec<u8>> {
    let version = text(version)?;
    let old = lines(&version);
    let (text, form) = Form::decode(now)?;
    let new: Vec<&str> = text.split_inclusive('\n').collect();
    let bare: Vec<&str> = new.iter().map(|line| without_end(line)).collect();
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let is_missing = |at: usize| {
        let line = number(at);
        missing
            .iter()
            .any(|range| (range.start..=range.end).contains(&line))
    };
    let mut result = String::with_capacity(text.len() + version.len());
    let mut add = |line: &str| {
        if !result.is_empty() && !result.ends_with('\n') {
            result.push_str(end);
        }
        result.push_str(line);
    };
    let places = aligned(&old, &bare).places();
    let mut at = 0;
    for ((before, after), _) in places {
        new[at..after.start].iter().for_each(|line| add(line));
        for line in before.filter(|at| is_missing(*at)) {
            add(old[line]);
            add("");
        }
        at = after.start;
    }
    new[at..].iter().for_each(|line| add(line));
    let ends = match text.is_empty() {
        true => version.ends_with('\n'),
        false => text.ends_with('\n'),
    };
    match ends {
        true if !(result.is_empty() || result.ends_with('\n')) => result.push_str(end),
        false if result.ends_with('\n') => {
            result.truncate(without_end(&result).len());
        }
        _ => {}
    }
    form.encode(&result)
}

/// Leaves out the lines of `lines` that `other` has, at the same place or
/// elsewhere. Only the lines of `other` count that `counts` says.
fn leave_out(other: &[&str], lines: &[&str], wanted: &mut [bool], counts: impl Fn(usize) -> bool) {
    let aligned = aligned(other, lines);
    for (at, line) in aligned.pairs() {
        wanted[line] &= !counts(at);
    }
    let mut moved: BTreeMap<&str, usize> = BTreeMap::new();
    for ((before, _), _) in aligned.places() {
        for at in before.filter(|at| counts(*at)) {
            *moved.entry(other[at]).or_default() += 1;
        }
    }
    for ((_, after), _) in aligned.places() {
        for line in after.filter(|line| wanted[*line]).collect::<Vec<_>>() {
            if let Some(left) = moved.get_mut(lines[line]).filter(|left| **left > 0) {
                *left -= 1;
                wanted[line] = false;
            }
        }
    }
}

/// Leaves out the lines of `lines` that `other` has, as often as it has them.
/// Equal lines that were seen are not counted: what was put back once must not
/// be missing again.
fn leave_out_present(other: &[&str], lines: &[&str], wanted: &mut [bool]) {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for line in other {
        *left.entry(line).or_default() += 1;
    }
    let mut is_left = |line: &str| match left.get_mut(line) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    };
    // A line at its place comes first, so that the others are missing. Places
    // are those of `put_back`, which adds no line that is at its place.
    for (line, _) in aligned(lines, other).pairs() {
        wanted[line] = wanted[line] && !is_left(lines[line]);
    }
    for (line, wanted) in wanted.iter_mut().enumerate() {
        *wanted = *wanted && !is_left(lines[line]);
    }
}

fn aligned(old: &[&str], new: &[&str]) -> Aligned {
    let [old, new] = [old, new].map(|side| -> Vec<&[u8]> {
        let bytes = side.iter().map(|line| line.as_bytes());
        bytes.collect()
    });
    Aligned::of(Algorithm::Histogram, &old, &new)
}

/// Returns a text in the form in which lines are compared.
fn text(content: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    if content.len() > MAX_BYTES {
        return None;
    }
    // UTF-16 stores NUL bytes. A NUL byte after decoding belongs to no text.
    plain(content).filter(|text| !is_binary(text.as_bytes()))
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').map(without_end).collect()
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the number of the line with an index. Texts have less than 2^32
/// lines.
fn number(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const NONE: [u32; 0] = [];

    /// The lines of `version` that `base` and `now` lack, with a base that was
    /// seen as a whole.
    fn of(base: &str, version: &str, now: &str) -> Vec<u32> {
        let whole = RangeSet::whole();
        let seen = SeenText {
            text: base.as_bytes(),
            lines: &whole,
        };
        let found = missing(&[seen], version.as_bytes(), &[now.as_bytes()]).unwrap();
        let lines = found.iter().flat_map(|range| range.start..=range.end);
        lines.collect()
    }

    #[test]
    fn a_line_that_was_not_seen_and_is_gone_is_missing() {
        let (base, version) = ("a\nb\nc\n", "a\nmine\nb\nc\n");
        assert_eq!(of(base, version, "a\nb\nC\n"), [2]);
        assert_eq!(of(base, version, "a\nmine\nb\nC\n"), NONE);
        // The line has moved, the file has another form, or lacks the last end.
        assert_eq!(of(base, version, "b\nc\nmine"), NONE);
        assert_eq!(of(base, version, "\u{feff}a\r\nmine\r\nb\r\n"), NONE);
        // Only lines that had been seen are gone.
        assert_eq!(of(base, version, "mine\n"), NONE);
        // Nothing was added but blank lines.
        assert_eq!(of(base, "a\n\nb\nc\n", base), NONE);
        assert_eq!(of(base, "a\n\nmine\nb\nc\n", base), [2, 3]);
    }

    #[test]
    fn only_lines_that_were_shown_were_seen() {
        let text = b"a\nb\nc\nd\n";
        let shown = RangeSet::default().with(2, 3);
        let seen = SeenText {
            text,
            lines: &shown,
        };
        let found = missing(&[seen], text, &[b"x\n"]).unwrap();
        let found: Vec<_> = found.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, [(1, 1), (4, 4)]);
    }

    #[test]
    fn bytes_are_not_compared() {
        let bytes = b"\x7fELF\0\0\0\x01\xff\0\0";
        assert_eq!(missing(&[], bytes, &[b"a\n"]), None);
        assert_eq!(put_back(b"a\n", &[], bytes), None);
    }

    fn back(version: &str, lines: &[u32], now: &str) -> String {
        let lines: Vec<LineRange> = lines
            .iter()
            .map(|line| LineRange {
                start: *line,
                end: *line,
            })
            .collect();
        let bytes = put_back(version.as_bytes(), &lines, now.as_bytes()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_come_back_at_their_place_and_in_the_form_of_the_file() {
        let version = "a\nmine\nb\nc\n";
        assert_eq!(back(version, &[2], "a\nb\nC\n"), "a\nmine\nb\nC\n");
        assert_eq!(back(version, &[2], "a\r\nb\r\n"), "a\r\nmine\r\nb\r\n");
        assert_eq!(back("a\nmine", &[2], "a"), "a\nmine");
        assert_eq!(back("a\nmine\n", &[2], ""), "mine\n");
        assert_eq!(back("mine\na\n", &[1], "\u{feff}a\n"), "\u{feff}mine\na\n");
        assert_eq!(
            back("a\nmine\nz\n", &[2], "a\nother\nz\n"),
            "a\nmine\nother\nz\n"
        );
    }

    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec(0..12_u8, 0..14)
            .prop_map(|lines| lines.iter().map(|line| format!("line {line}\n")).collect())
    }

    fn count(text: &str, line: &str) -> usize {
        text.lines().filter(|one| *one == line).count()
    }

    proptest! {
        /// A text in which no line occurs twice has one answer, which sets of
        /// lines give as well.
        #[test]
        fn sets_of_lines_agree(base in texts(), version in texts(), now in texts()) {
            let once = |text: &str| -> String {
                let mut known = BTreeSet::new();
                let lines = text.lines().filter(|line| known.insert(*line));
                lines.map(|line| format!("{line}\n")).collect()
            };
            let (base, version, now) = (once(&base), once(&version), once(&now));
            let slow: Vec<u32> = version.lines().enumerate()
                .filter(|(_, line)| count(&base, line) == 0 && count(&now, line) == 0)
                .map(|(at, _)| number(at))
                .collect();
            prop_assert_eq!(of(&base, &version, &now), slow);
        }

        /// With lines that occur several times, as many are missing as the
        /// numbers of occurrences allow.
        #[test]
        fn numbers_of_lines_bound_the_answer(
            base in texts(), version in texts(), now in texts()
        ) {
            let found = of(&base, &version, &now);
            for line in version.lines() {
                let gone = found.iter()
                    .filter(|at| version.lines().nth(**at as usize - 1) == Some(line))
                    .count();
                let of = |text: &str| count(text, line);
                let most = of(&version).saturating_sub(of(&base).max(of(&now)));
                let least = of(&version).saturating_sub(of(&base) + of(&now));
                prop_assert!((least..=most).contains(&gone), "{} of {}", gone, line);
            }
        }

        /// After the missing lines were put back, none is missing, and all other
        /// lines are as before.
        #[test]
        fn what_is_put_back_is_all_that_changes(
            base in texts(), version in texts(), now in texts(), ends in any::<bool>()
        ) {
            let now = if ends { &now[..] } else { now.trim_end_matches('\n') };
            let lines = of(&base, &version, now);
            let after = back(&version, &lines, now);
            prop_assert_eq!(of(&base, &version, &after), NONE);
            let mut left = after.lines();
            prop_assert!(now.lines().all(|line| left.any(|one| one == line)));
            prop_assert_eq!(after.lines().count(), now.lines().count() + lines.len());
        }
    }
}
