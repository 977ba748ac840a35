//! The differences between two versions as people read them: changed lines with
//! context, the removed lines of each change first.

use imara_diff::Algorithm;

use super::compared::{Compared, Kind};
use crate::text::align::Aligned;

/// Changed lines with the unchanged lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'a> {
    /// The number of the first line in the older version, counted from 1. If
    /// the hunk has no lines there, the number of the line before it.
    pub old_start: u32,
    /// How many lines of the older version the hunk has.
    pub old_lines: u32,
    /// The number of the first line in the newer version, counted from 1. If
    /// the hunk has no lines there, the number of the line before it.
    pub new_start: u32,
    /// How many lines of the newer version the hunk has.
    pub new_lines: u32,
    /// The lines of both versions, in order.
    pub lines: Vec<Compared<'a>>,
}

/// Returns the changes with `context` unchanged lines around each. Changes
/// whose contexts touch are one hunk.
pub fn hunks(compared: Vec<Compared<'_>>, context: usize) -> Vec<Hunk<'_>> {
    let lines = in_order(compared);
    let changed: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].kind != Kind::Context)
        .collect();
    let mut spans: Vec<std::ops::Range<usize>> = Vec::new();
    for at in changed {
        let from = at.saturating_sub(context);
        let to = at.saturating_add(context + 1).min(lines.len());
        match spans.last_mut() {
            Some(last) if from <= last.end => last.end = to,
            _ => spans.push(from..to),
        }
    }
    let (mut old, mut new) = (0, 0);
    let mut rest = lines.into_iter();
    let mut at = 0;
    let mut found = Vec::with_capacity(spans.len());
    for span in spans {
        // Between two hunks, nothing changed.
        let passed = u32::try_from(span.start - at).unwrap_or(u32::MAX);
        rest.by_ref().take(span.start - at).for_each(drop);
        (old, new) = (old + passed, new + passed);
        at = span.end;
        let lines: Vec<_> = rest.by_ref().take(span.len()).collect();
        let count = |other: Kind| {
            let of = lines.iter().filter(|line| line.kind != other);
            u32::try_from(of.count()).unwrap_or(u32::MAX)
        };
        let (old_lines, new_lines) = (count(Kind::Added), count(Kind::Removed));
        found.push(Hunk {
            old_start: old + u32::from(old_lines > 0),
            old_lines,
            new_start: new + u32::from(new_lines > 0),
            new_lines,
            lines,
        });
        (old, new) = (old + old_lines, new + new_lines);
    }
    found
}

/// Puts the removed lines of each run of changed lines before the added ones. A
/// line that one version removed and a later one added again counts as
/// unchanged.
fn in_order(compared: Vec<Compared<'_>>) -> Vec<Compared<'_>> {
    let mut all = Vec::with_capacity(compared.len());
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for line in compared {
        match line.kind {
            Kind::Removed => removed.push(line),
            Kind::Added => added.push(line),
            Kind::Context => {
                put(&mut all, &mut removed, &mut added);
                all.push(line);
            }
        }
    }
    put(&mut all, &mut removed, &mut added);
    all
}

fn put<'a>(
    all: &mut Vec<Compared<'a>>,
    removed: &mut Vec<Compared<'a>>,
    added: &mut Vec<Compared<'a>>,
) {
    let texts =
        |lines: &[Compared<'a>]| -> Vec<&'a [u8]> { lines.iter().map(|line| line.text).collect() };
    let (old, new) = (texts(removed), texts(added));
    let pairs = Aligned::of(Algorithm::Myers, &old, &new).pairs();
    let end = (removed.len(), added.len());
    let (mut was, mut is) = (0, 0);
    for (at, to) in pairs.into_iter().chain([end]) {
        all.extend_from_slice(&removed[was..at]);
        all.extend_from_slice(&added[is..to]);
        let kind = Kind::Context;
        let same = added.get(to).map(|line| Compared {
            kind,
            ..line.clone()
        });
        all.extend(same);
        (was, is) = (at + 1, to + 1);
    }
    removed.clear();
    added.clear();
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Step, Weave};
    use super::*;

    /// Returns the differences as `diff -u` writes them, with short headers.
    fn told(versions: &[&str], from: usize, to: usize, context: usize) -> String {
        let steps: Vec<Step> = versions
            .iter()
            .map(|text| Step::Held(text.as_bytes().into()))
            .collect();
        let weave = Weave::new(&steps);
        let mut told = String::new();
        for hunk in hunks(weave.compare(from, to), context) {
            told += &format!(
                "@{},{} {},{}\n",
                hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
            );
            for line in hunk.lines {
                told.push(match line.kind {
                    Kind::Context => ' ',
                    Kind::Added => '+',
                    Kind::Removed => '-',
                });
                told += std::str::from_utf8(line.text).unwrap();
            }
        }
        told
    }

    #[test]
    fn changes_stand_among_their_neighbours() {
        let versions = [
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\ntwo\n3\n4\n5\n6\n7\n8\n9\nten\n",
        ];
        assert_eq!(
            told(&versions, 0, 1, 1),
            "@1,3 1,3\n 1\n-2\n+two\n 3\n@9,1 9,2\n 9\n+ten\n"
        );
        assert_eq!(
            told(&versions, 0, 1, 0),
            "@2,1 2,1\n-2\n+two\n@9,0 10,1\n+ten\n"
        );
        assert_eq!(told(&versions, 0, 1, 4).matches('@').count(), 1);
        assert_eq!(told(&["", "a\n"], 0, 1, 3), "@0,0 1,1\n+a\n");
        assert_eq!(told(&["a\n", "a\n"], 0, 1, 3), "");
    }

    #[test]
    fn what_went_and_came_again_has_not_changed() {
        // Another line was added and removed in its place in the meantime.
        let versions = [
            "a\nb one\nc\n",
            "a\nc\n",
            "x\na\nc\ny\n",
            "x\na\nb one\nc\n",
        ];
        assert_eq!(told(&versions, 0, 3, 0), "@0,0 1,1\n+x\n");
        let versions = ["{\n", "", "{\n}\n"];
        assert_eq!(told(&versions, 0, 2, 0), "@1,0 2,1\n+}\n");
    }

    proptest! {
        /// A hunk contains the lines of both versions that its header counts,
        /// and everything outside the hunks is the same in both.
        #[test]
        fn the_newer_version_is_the_older_with_the_hunks_applied(
            versions in prop::collection::vec("([ab]\n){0,8}", 2..6),
            context in 0_usize..3,
        ) {
            let steps: Vec<Step> = versions
                .iter()
                .map(|text| Step::Held(text.as_bytes().into()))
                .collect();
            let weave = Weave::new(&steps);
            let (from, to) = (0, versions.len() - 1);
            let old: Vec<&str> = versions[from].split_inclusive('\n').collect();
            let mut made = String::new();
            let mut at = 0;
            for hunk in hunks(weave.compare(from, to), context) {
                let start = (hunk.old_start - u32::from(hunk.old_lines > 0)) as usize;
                made.extend(old[at..start].iter().copied());
                let lines_before = made.matches('\n').count() as u32;
                prop_assert_eq!(hunk.new_start, lines_before + u32::from(hunk.new_lines > 0));
                at = start;
                for line in &hunk.lines {
                    let text = std::str::from_utf8(line.text).unwrap();
                    if line.kind != Kind::Added {
                        prop_assert_eq!(old[at], text);
                        at += 1;
                    }
                    if line.kind != Kind::Removed {
                        made.push_str(text);
                    }
                }
                prop_assert_eq!(at - start, hunk.old_lines as usize);
            }
            made.extend(old[at..].iter().copied());
            prop_assert_eq!(&made, &versions[to]);
        }
    }
}
