//! Counts and compares the lines of two contents, and returns the first
//! characters of one.

use imara_diff::{Algorithm, Diff, InternedInput, Token};
use touchmark_proto::{LineCounts, LineRange};

use crate::effect::TextPair;
use crate::tracker::carry::{Difference, Hunk};

/// The maximum number of bytes of a content that is compared.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum number of steps that a comparison may take. Contents that could
/// take more are not compared, so that one answer takes a few milliseconds at
/// most.
const MAX_EFFORT: u64 = 32 << 20;

/// A NUL byte among this number of first bytes makes a content binary, as in
/// git.
const BINARY_PROBE: usize = 8_000;

/// The number of characters of a preview.
const PREVIEW_CHARS: usize = 200;

/// Returns the lines added and removed between two contents, as `git diff
/// --numstat` counts them: a line differs also if only its line ending does. An
/// absent file counts as empty. Returns `None` for binary contents, for
/// contents larger than [`MAX_BYTES`], and for those that repeat the same lines
/// so often that comparing them would take long.
pub fn count(old: &[u8], new: &[u8]) -> Option<LineCounts> {
    let (diff, _) = compare(old, new)?;
    Some(LineCounts {
        added: diff.count_additions(),
        removed: diff.count_removals(),
    })
}

/// Returns where two contents differ, in order, or `None` if [`count`] returns
/// `None`.
pub fn difference(pair: TextPair, old: &[u8], new: &[u8]) -> Option<Difference> {
    let (diff, old_lines) = compare(old, new)?;
    Some(Difference {
        pair,
        old_lines,
        hunks: hunks(&diff),
    })
}

/// Returns the places where two contents differ, in order, or `None` if
/// [`count`] returns `None`.
pub fn places(old: &[u8], new: &[u8]) -> Option<Vec<Hunk>> {
    compare(old, new).map(|(diff, _)| hunks(&diff))
}

fn hunks(diff: &Diff) -> Vec<Hunk> {
    let length = |range: &std::ops::Range<u32>| range.end - range.start;
    let hunks = diff.hunks().map(|hunk| Hunk {
        old_start: hunk.before.start + 1,
        old_lines: length(&hunk.before),
        new_start: hunk.after.start + 1,
        new_lines: length(&hunk.after),
    });
    hunks.collect()
}

/// Returns the lines of the older content that the newer one does not have,
/// counted in the older one, or `None` if [`count`] returns `None`.
pub fn removed(old: &[u8], new: &[u8]) -> Option<Vec<LineRange>> {
    let (diff, _) = compare(old, new)?;
    let hunks = diff.hunks().filter(|hunk| !hunk.before.is_empty());
    let lines = hunks.map(|hunk| LineRange {
        start: hunk.before.start + 1,
        end: hunk.before.end,
    });
    Some(lines.collect())
}

/// Returns where two contents differ, by the indexes of lines, and the number
/// of lines of the older one. Returns `None` if [`count`] does.
pub(crate) fn compare(old: &[u8], new: &[u8]) -> Option<(Diff, u32)> {
    let cannot = |content: &[u8]| content.len() > MAX_BYTES || is_binary(content);
    if cannot(old) || cannot(new) {
        return None;
    }
    let input = InternedInput::new(old, new);
    let lines = u32::try_from(input.before.len()).ok()?;
    is_quick(&input).then(|| (Diff::compute(Algorithm::Histogram, &input), lines))
}

/// Returns whether a comparison of these lines takes a few milliseconds at most.
pub(crate) fn is_quick(input: &InternedInput<&[u8]>) -> bool {
    effort(input) <= MAX_EFFORT
}

/// Returns the lines of a writer that were taken back: the writer changed
/// `base` to `mine`, and in their place `now` has again what `base` had. Lines
/// are counted in `mine`. Returns no lines for contents that [`count`] does not
/// compare.
pub fn taken_back(base: &[u8], mine: &[u8], now: &[u8]) -> Vec<LineRange> {
    let compared = [(base, mine), (mine, now), (base, now)];
    if compared.iter().any(|(old, new)| count(old, new).is_none()) {
        return Vec::new();
    }
    let [written, since, all] = compared
        .map(|(old, new)| Diff::compute(Algorithm::Histogram, &InternedInput::new(old, new)));
    let back = since
        .hunks()
        .filter(|hunk| hunk.after.clone().all(|line| !all.is_added(line)))
        .flat_map(|hunk| hunk.before)
        .filter(|line| written.is_added(*line));
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

/// Returns how many pairs of lines a comparison may have to look at in the
/// worst case.
///
/// Lines that are unique in both texts, and in the same order, split the texts
/// into pieces that are compared separately. Real edits leave many such lines.
/// Texts that repeat the same few lines, or that have them in another order,
/// leave none, and then every algorithm is quadratic (measured: half a minute
/// for half a megabyte).
fn effort(input: &InternedInput<&[u8]>) -> u64 {
    let places = |side: &[Token]| {
        let mut places = vec![(0_u32, 0_usize); input.interner.num_tokens() as usize];
        for (at, line) in side.iter().enumerate() {
            let place = &mut places[line.0 as usize];
            *place = (place.0 + 1, at);
        }
        places
    };
    let in_old = places(&input.before);
    let in_new = places(&input.after);
    // Pairs of the place in old and the place in new, for lines unique in both,
    // in old's order.
    let unique: Vec<(usize, usize)> = input
        .before
        .iter()
        .map(|line| (in_old[line.0 as usize], in_new[line.0 as usize]))
        .filter(|(old, new)| old.0 == 1 && new.0 == 1)
        .map(|(old, new)| (old.1, new.1))
        .collect();
    // Lines that the other text does not have are set aside before the search.
    let shared_old = running(&input.before, |line| in_new[line.0 as usize].0 > 0);
    let shared_new = running(&input.after, |line| in_old[line.0 as usize].0 > 0);
    let mut effort = 0;
    let (mut old_from, mut new_from) = (0, 0);
    let ends = (input.before.len(), input.after.len());
    for (old, new) in increasing(&unique).into_iter().chain([ends]) {
        effort +=
            (shared_old[old] - shared_old[old_from]) * (shared_new[new] - shared_new[new_from]);
        // The last pair is the end. Nothing is looked up after it.
        (old_from, new_from) = (old + 1, new + 1);
    }
    effort
}

/// Returns, for each number of first lines, how many of those satisfy `is_so`.
fn running(side: &[Token], is_so: impl Fn(&Token) -> bool) -> Vec<u64> {
    let mut counts = vec![0];
    let mut count = 0;
    for line in side {
        count += u64::from(is_so(line));
        counts.push(count);
    }
    counts
}

/// Returns the longest subsequence whose second numbers increase too.
fn increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length: the index of the pair that ends the best subsequence of
    // that length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut found = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        found.push(pairs[index]);
        at = before[index];
    }
    found.reverse();
    found
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
        // A few lines repeated many times: a comparison would take half a
        // minute.
        let repeated = |lines: &[u8]| lines.repeat(60_000);
        assert_eq!(count(&repeated(b"x\ny\n"), &repeated(b"y\nz\nx\n")), None);
        // A few lines repeated as often as in real files.
        let some = |lines: &[u8]| lines.repeat(500);
        assert!(count(&some(b"x\ny\n"), &some(b"y\nz\nx\n")).is_some());
    }

    #[test]
    fn the_longest_increasing_subsequence_is_found() {
        let of = |seconds: &[usize]| -> Vec<usize> {
            let pairs: Vec<_> = seconds.iter().copied().enumerate().collect();
            increasing(&pairs).into_iter().map(|pair| pair.1).collect()
        };
        assert_eq!(of(&[]), [0; 0]);
        assert_eq!(of(&[3, 2, 1]), [1]);
        assert_eq!(of(&[9, 1, 8, 2, 7, 3]), [1, 2, 3]);
        assert_eq!(of(&[0, 1, 2]), [0, 1, 2]);
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
