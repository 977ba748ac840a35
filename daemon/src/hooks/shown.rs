//! Finds the lines of files that an output shows. A line counts only if its
//! place is certain: by its number, by a hunk's header, or by the lines around
//! it.

mod diffs;
mod numbers;
mod runs;
// The tests of this crate run on Linux only.
#[cfg(all(test, target_os = "linux"))]
mod table;

use std::borrow::Cow;

use touchmark_proto::LineRange;

/// The maximum number of bytes of an output that are examined.
const OUTPUT: usize = 1 << 20;

/// A file that an output may show.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    /// The names by which outputs may refer to it.
    pub(super) names: &'a [String],
    pub(super) text: &'a str,
}

/// A file that an output may show, with its content before the command and its
/// current one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<'a> {
    pub(super) names: &'a [String],
    pub(super) before: &'a str,
    pub(super) now: &'a str,
}

/// The lines of a file that an output shows, and the content that they belong
/// to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) of_now: bool,
    pub(super) ranges: Vec<LineRange>,
}

/// Returns the lines of each file that a plain output shows. For a file that
/// has changed meanwhile, they are lines of its current content, unless the
/// output shows more of the earlier one.
pub(super) fn seen(output: &str, held: &[Held<'_>], shortest: usize) -> Vec<Seen> {
    let of = |text: &dyn Fn(&Held<'_>) -> usize| -> Vec<Vec<LineRange>> {
        let files: Vec<File<'_>> = held
            .iter()
            .map(|one| File {
                names: one.names,
                text: match text(one) {
                    0 => one.before,
                    1 => one.now,
                    _ => "",
                },
            })
            .collect();
        shown(output, &files, shortest)
    };
    let before = of(&|_| 0);
    let is_copy = |one: &Held<'_>| {
        let mut others = held.iter().filter(|other| other.before == other.now);
        one.before != one.now && others.any(|other| other.now == one.now)
    };
    if held.iter().all(|one| one.before == one.now) {
        let seen = |ranges| Seen {
            of_now: true,
            ranges,
        };
        return before.into_iter().map(seen).collect();
    }
    // The lines of a copy that the command made count for the original file
    // only.
    let now = of(&|one| if is_copy(one) { 2 } else { 1 });
    let count =
        |ranges: &[LineRange]| -> u32 { ranges.iter().map(|one| one.end - one.start + 1).sum() };
    let better =
        |(before, now): (Vec<LineRange>, Vec<LineRange>)| match count(&now) >= count(&before) {
            true => Seen {
                of_now: true,
                ranges: now,
            },
            false => Seen {
                of_now: false,
                ranges: before,
            },
        };
    before.into_iter().zip(now).map(better).collect()
}

/// The lines of a file, with the number of letters and digits before each.
#[derive(Debug)]
struct Lines<'a> {
    lines: Vec<&'a str>,
    weights: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut sum = 0;
        let mut weights = vec![0];
        for line in &lines {
            sum += weight(line);
            weights.push(sum);
        }
        Self { lines, weights }
    }

    fn get(&self, index: usize) -> Option<&'a str> {
        self.lines.get(index).copied()
    }

    /// Returns the number of letters and digits in the lines from one index up
    /// to another.
    fn weight(&self, from: usize, to: usize) -> usize {
        let at = |index: usize| self.weights.get(index).copied().unwrap_or_default();
        at(to).saturating_sub(at(from))
    }
}

/// A line of an output.
#[derive(Debug, Default)]
struct Printed<'a> {
    /// If a number begins the line: the file, if the line names it; the line
    /// number; and the text after the number.
    numbered: Option<(Option<usize>, usize, &'a str)>,
    /// The texts of a file's line that it may be, and the file, if the line
    /// names it.
    texts: Vec<(Option<usize>, &'a str)>,
}

/// Returns the number of letters and digits, a measure of how distinctive a
/// line is.
fn weight(line: &str) -> usize {
    line.chars()
        .filter(|letter| letter.is_alphanumeric())
        .count()
}

/// Returns the lines of each file that a plain output shows. Runs of fewer than
/// `shortest` lines without numbers do not count.
pub(super) fn shown(output: &str, files: &[File<'_>], shortest: usize) -> Vec<Vec<LineRange>> {
    let lines: Vec<Lines<'_>> = files.iter().map(|file| Lines::of(file.text)).collect();
    let mut seen: Vec<Vec<bool>> = lines
        .iter()
        .map(|lines| vec![false; lines.lines.len()])
        .collect();
    let printed: Vec<&str> = output.lines().collect();
    let mut of_hunk = vec![false; printed.len()];
    diffs::place(&printed, files, &lines, &mut of_hunk, &mut seen);
    let mut parsed: Vec<Printed<'_>> = printed
        .iter()
        .zip(&of_hunk)
        .map(|(line, of_hunk)| match of_hunk {
            true => Printed::default(),
            false => numbers::parse(line, files),
        })
        .collect();
    numbers::place(&printed, &mut parsed, &lines, &mut seen);
    runs::place(&parsed, &lines, shortest, &mut seen);
    whole(output, files, &lines, &mut seen);
    seen.iter().map(|seen| ranges(seen)).collect()
}

/// Marks all lines of a file if the output is that file from beginning to end,
/// and no part of another file. Blank lines at the end may have been trimmed.
fn whole(output: &str, files: &[File<'_>], lines: &[Lines<'_>], seen: &mut [Vec<bool>]) {
    // An agent that trims an output also removes the newline at its end.
    let shown = match output.ends_with('\n') {
        true => output.lines().count(),
        false => usize::MAX,
    };
    let output = output.trim_end();
    let is_it =
        |file: &File<'_>| file.text.lines().eq(output.lines()) || file.text.trim_end() == output;
    let Some(found) = files.iter().position(is_it) else {
        return;
    };
    // A short file may consist of lines that another one has too.
    let from_line = |lines: &mut dyn Iterator<Item = &str>| {
        lines.fold(String::new(), |all, line| all + "\n" + line)
    };
    let part = from_line(&mut output.lines());
    let has_part = |lines: &Lines<'_>| from_line(&mut lines.lines.iter().copied()).contains(&part);
    let mut others = lines
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != found);
    if others.any(|(_, lines)| has_part(lines)) {
        return;
    }
    if let Some(seen) = seen.get_mut(found) {
        seen.iter_mut().take(shown).for_each(|seen| *seen = true);
    }
}

fn ranges(seen: &[bool]) -> Vec<LineRange> {
    let mut ranges: Vec<LineRange> = Vec::new();
    let numbers = seen.iter().zip(1_u32..).filter(|(seen, _)| **seen);
    for (_, number) in numbers {
        match ranges.last_mut() {
            Some(last) if last.end + 1 == number => last.end = number,
            _ => ranges.push(LineRange {
                start: number,
                end: number,
            }),
        }
    }
    ranges
}

/// Returns the end of the part of an output that is examined, which is the end
/// of a line.
fn end(output: &str) -> usize {
    if output.len() <= OUTPUT {
        return output.len();
    }
    let bytes = output.as_bytes().get(..OUTPUT).unwrap_or_default();
    memchr::memrchr(b'\n', bytes).unwrap_or_default()
}

/// Returns the part of an output that is examined, without escape codes for
/// colours.
pub(super) fn plain(output: &str) -> Cow<'_, str> {
    let output = output.get(..end(output)).unwrap_or_default();
    if !output.contains('\u{1b}') {
        return Cow::Borrowed(output);
    }
    let mut plain = String::with_capacity(output.len());
    let mut parts = output.split("\u{1b}[");
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';');
        plain.push_str(rest.strip_prefix(['m', 'K']).unwrap_or(rest));
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POEM: &str = "the first of all lines\n\nfn second() {\n    third(4);\n}\n\nfn sixth() {\n    seventh(8);\n}\n";

    pub(super) fn of(output: &str, files: &[(&str, &str)]) -> Vec<Vec<(u32, u32)>> {
        let names: Vec<Vec<String>> = files
            .iter()
            .map(|(name, _)| vec![(*name).to_owned()])
            .collect();
        let files: Vec<File<'_>> = names
            .iter()
            .zip(files)
            .map(|(names, (_, text))| File { names, text })
            .collect();
        shown(&plain(output), &files, 1)
            .into_iter()
            .map(|ranges| ranges.into_iter().map(|one| (one.start, one.end)).collect())
            .collect()
    }

    fn one(output: &str) -> Vec<(u32, u32)> {
        of(output, &[("a.rs", POEM)]).remove(0)
    }

    #[test]
    fn lines_in_a_row() {
        assert_eq!(one(POEM), [(1, 9)]);
        assert_eq!(one(&format!("before\n{POEM}after\n")), [(1, 9)]);
        let of_blank = |output| of(output, &[("a.rs", "\n    return None;\n\n")]).remove(0);
        assert_eq!(of_blank("\n    return None;"), [(1, 3)], "trimmed");
        assert_eq!(of_blank("\n    return None;\n"), [(1, 2)], "not trimmed");
        assert_eq!(
            one("fn second() {\n    third(4);\n}"),
            [(3, 5)],
            "to the output's end"
        );
        assert_eq!(
            one("fn second() {\n    third(4);\n}\n---\n"),
            [(3, 4)],
            "a brace may be any"
        );
        assert_eq!(
            one("    third(4);\n... [12 lines truncated] ...\n    seventh(8);\n}\n"),
            [(4, 4), (8, 9)]
        );
        assert_eq!(one("}\n\n}\n"), [], "it may be anywhere");
        assert_eq!(one("third(4);\n"), [], "without its indentation");
        assert_eq!(
            one("\u{1b}[1mfn sixth() {\u{1b}[0m\n    seventh(8);\n"),
            [(7, 8)],
            "coloured"
        );
        assert_eq!(one(""), []);
    }

    #[test]
    fn short_pieces_in_another_order_are_no_reading() {
        assert_eq!(one("    seventh(8);\nthe first of all lines\n"), []);
        assert_eq!(
            one("the first of all lines\n    seventh(8);\n"),
            [(1, 1), (8, 8)]
        );
    }

    #[test]
    fn lines_with_numbers() {
        assert_eq!(
            one("3:fn second() {\n4-    third(4);\n5-}\n--\n9:}\n"),
            [(3, 5), (9, 9)]
        );
        assert_eq!(
            one("     3\tfn second() {\n     4\t    third(4);\n     5\t}\n     6\t\n"),
            [(3, 6)]
        );
        assert_eq!(
            one("   3   │ fn second() {\n   4   │     third(4);\n"),
            [(3, 4)]
        );
        assert_eq!(one("a.rs:8:    seventh(8);\na.rs-9-}\n"), [(8, 9)]);
        assert_eq!(
            one("./a.rs:8:5:    seventh(8);\n"),
            [(8, 8)],
            "with its column"
        );
        assert_eq!(one("b.rs:8:    seventh(8);\n"), [], "another file's");
        assert_eq!(
            one("7:    seventh(8);\n"),
            [(8, 8)],
            "the numbers of something else"
        );
        assert_eq!(one("9 }\n"), [], "it may be anything");
        let again = "let a = 1;\nlet b = 2;\n".repeat(3);
        let output = "     1\tlet a = 1;\n     2\tlet b = 2;\n";
        let read = of(output, &[("a", again.as_str())]);
        assert_eq!(read, [vec![]], "a part may have been numbered");
    }

    #[test]
    fn hunks_of_a_patch() {
        let patch = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -2,4 +2,4 @@ fn x\n \n fn second() {\n-    old(4);\n+    third(4);\n }\n";
        assert_eq!(one(patch), [(2, 5)]);
        assert_eq!(
            one(&patch.replace("+2,4", "+3,4")),
            [],
            "what the file does not hold there"
        );
        assert_eq!(one(&patch.replace("a.rs", "b.rs")), []);
        assert_eq!(
            one(&patch.replace("+2,4", &format!("+{},4", usize::MAX))),
            []
        );
    }

    #[test]
    fn what_two_files_hold_is_nobodys() {
        let files = [
            ("a", "one header\nfor both\nand a line of a\n"),
            ("b", "one header\nfor both\nand a line of b\n"),
        ];
        assert_eq!(of("one header\nfor both\n", &files), [vec![], vec![]]);
        assert_eq!(of(files[0].1, &files), [vec![(1, 3)], vec![]]);
        let both = format!("{}{}", files[0].1, files[1].1);
        assert_eq!(of(&both, &files), [vec![(1, 3)], vec![(1, 3)]]);
        let part = [
            ("a", "the first\n    return None;\n"),
            ("b", "    return None;\n"),
        ];
        assert_eq!(of(part[1].1, &part), [vec![], vec![]], "a's last line");
        let same = [("a", POEM), ("b", POEM)];
        assert_eq!(of(POEM, &same), [vec![], vec![]]);
        assert_eq!(of("b:3:fn second() {\n", &same), [vec![], vec![(3, 3)]]);
    }
}
