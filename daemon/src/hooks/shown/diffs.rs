//! Hunks of patches, as `git diff`, `git show` and `diff -u` print them.

use super::numbers::is_enough;
use super::{File, Lines};

/// One side of the patch that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Side {
    file: Option<usize>,
    /// The index of the next line, from 0.
    next: usize,
    /// The number of lines that remain in the hunk.
    left: usize,
    /// The beginning of the current run of lines that agree with the file.
    run: Option<usize>,
}

impl Side {
    /// Compares the side's next line with `text`.
    fn take(&mut self, text: &str, lines: &[Lines<'_>], seen: &mut [Vec<bool>]) {
        let is_it = self
            .file
            .and_then(|file| lines.get(file)?.get(self.next))
            .is_some_and(|line| line == text);
        match is_it {
            true => _ = self.run.get_or_insert(self.next),
            false => self.close(lines, seen),
        }
        self.next = self.next.saturating_add(1);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.close(lines, seen);
        }
    }

    fn close(&mut self, lines: &[Lines<'_>], seen: &mut [Vec<bool>]) {
        let (Some(run), Some(file)) = (self.run.take(), self.file) else {
            return;
        };
        if let (Some(lines), Some(seen)) = (lines.get(file), seen.get_mut(file))
            && is_enough(lines, run, self.next)
            && let Some(run) = seen.get_mut(run..self.next)
        {
            run.fill(true);
        }
    }
}

/// Marks the lines that hunks show and that the files have at these numbers,
/// and the lines of the output that belong to hunks.
pub(super) fn place(
    printed: &[&str],
    files: &[File<'_>],
    lines: &[Lines<'_>],
    of_hunk: &mut [bool],
    seen: &mut [Vec<bool>],
) {
    let (mut old, mut new) = (Side::default(), Side::default());
    let mut old_name = "";
    for (line, of_hunk) in printed.iter().zip(of_hunk) {
        if old.left > 0 || new.left > 0 {
            // A patch of other files may itself be the file that is shown.
            *of_hunk = old.file.is_some() || new.file.is_some();
            let text = line.get(1..).unwrap_or_default();
            match line.chars().next() {
                // Some programs trim the blank of an empty line.
                Some(' ') | None => {
                    old.take(text, lines, seen);
                    new.take(text, lines, seen);
                    continue;
                }
                Some('-') => {
                    old.take(text, lines, seen);
                    continue;
                }
                Some('+') => {
                    new.take(text, lines, seen);
                    continue;
                }
                Some('\\') => continue,
                // The hunk was cut.
                Some(_) => {
                    *of_hunk = false;
                    old.close(lines, seen);
                    new.close(lines, seen);
                    (old.left, new.left) = (0, 0);
                }
            }
        }
        if let Some(name) = line.strip_prefix("--- ") {
            old_name = name;
            old.file = named(name, files);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            new.file = named(name, files);
            // The old side shows the file's earlier content, not its current
            // one.
            if new.file == old.file || without_side(name) == without_side(old_name) {
                old.file = None;
            }
        } else if let Some((from, to)) = header(line) {
            (old.next, old.left) = from;
            (new.next, new.left) = to;
        }
    }
    old.close(lines, seen);
    new.close(lines, seen);
}

/// Returns the numbers in `@@ -1,2 +3,4 @@`.
fn header(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let (from, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (to, _) = rest.split_once(" @@")?;
    Some((span(from)?, span(to)?))
}

fn span(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let start: usize = start.parse().ok()?;
    Some((start.saturating_sub(1), count.parse().ok()?))
}

/// Returns a name in a patch without the letter of its side and the time after
/// it.
fn without_side(name: &str) -> &str {
    let name = name.split('\t').next().unwrap_or_default().trim_end();
    let sides = ["a/", "b/", "c/", "i/", "o/", "w/"];
    sides
        .iter()
        .find_map(|side| name.strip_prefix(side))
        .unwrap_or(name)
}

fn named(name: &str, files: &[File<'_>]) -> Option<usize> {
    let whole = name.split('\t').next().unwrap_or_default().trim_end();
    let is = |wanted: &str| {
        let wanted = wanted.strip_prefix("./").unwrap_or(wanted);
        files
            .iter()
            .position(|file| file.names.iter().any(|name| name == wanted))
    };
    is(without_side(name)).or_else(|| is(whole))
}
