//! Consecutive lines of an output that are a file's, wherever they are in the
//! output.

use std::collections::{HashMap, HashSet};

use super::{Lines, Printed, weight};

/// The minimum number of letters and digits of a run of `RUN` lines or more: a
/// run with fewer may come from anywhere.
pub(super) const RUN_LETTERS: usize = 4;
/// The minimum number of letters and digits of a run of fewer than `RUN` lines.
const SHORT_LETTERS: usize = 6;
/// The number of lines from which `RUN_LETTERS` applies.
const RUN: usize = 3;

/// The minimum number of letters and digits by which a run must exceed what
/// also occurs elsewhere.
const OWN_LETTERS: usize = 3;

/// The minimum number of letters and digits of a line at the end of a run: a
/// brace follows anything.
const EDGE_LETTERS: usize = 2;

/// The maximum number of places of a line by which runs are searched.
const PLACES: usize = 8;

/// The maximum number of runs that are compared with each other.
const RUNS: usize = 2_048;

/// Consecutive lines of an output that are a file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    file: usize,
    /// The index of its first line in the output, from 0.
    printed: usize,
    /// The index of its first line in the file, from 0.
    line: usize,
    len: usize,
}

impl Run {
    fn end(&self) -> usize {
        self.printed + self.len
    }

    /// Returns the number of letters and digits of the part within an interval
    /// of the output.
    fn weight(&self, lines: &[Lines<'_>], from: usize, to: usize) -> usize {
        let (from, to) = (from.max(self.printed), to.min(self.end()));
        let at = |printed: usize| self.line + printed - self.printed;
        match lines.get(self.file) {
            Some(lines) if from < to => lines.weight(at(from), at(to)),
            _ => 0,
        }
    }
}

/// Marks the lines of runs whose place is certain.
pub(super) fn place(
    printed: &[Printed<'_>],
    lines: &[Lines<'_>],
    shortest: usize,
    seen: &mut [Vec<bool>],
) {
    let mut runs = find(printed, lines);
    if runs.len() > RUNS {
        runs.sort_by_key(|run| std::cmp::Reverse(run.len));
        runs.truncate(RUNS);
    }
    runs.sort_by_key(|run| run.printed);
    let is_certain = |run: &Run| {
        let all = run.weight(lines, run.printed, run.end());
        let needed = match run.len {
            RUN.. => RUN_LETTERS,
            _ => SHORT_LETTERS,
        };
        let rivals = runs.iter().filter(|other| *other != run);
        run.len >= shortest
            && all >= needed
            && rivals
                .filter(|other| other.printed < run.end() && run.printed < other.end())
                .all(|other| all - run.weight(lines, other.printed, other.end()) >= OWN_LETTERS)
    };
    let certain: Vec<Run> = runs.iter().copied().filter(is_certain).collect();
    let mut claims = vec![0_usize; printed.len()];
    for run in &certain {
        let own = claims.iter_mut().take(run.end()).skip(run.printed);
        own.for_each(|claims| *claims += 1);
    }
    for run in &certain {
        // Single lines in another order than the file's were sorted, or come
        // from elsewhere.
        if run.len < RUN && is_out_of_order(run.file, &certain) {
            continue;
        }
        let (from, to) = edges(run, printed.len(), lines);
        for index in from..to {
            let line = run.line + index - run.printed;
            if let Some(seen) = seen.get_mut(run.file).and_then(|seen| seen.get_mut(line))
                && claims.get(index) == Some(&1)
            {
                *seen = true;
            }
        }
    }
}

fn is_out_of_order(file: usize, certain: &[Run]) -> bool {
    let short = certain
        .iter()
        .filter(|run| run.file == file && run.len < RUN);
    !short.map(|run| run.line).is_sorted()
}

/// Returns a run without lines at its ends that may come from anywhere. They
/// stay if the file or the output begins or ends there too.
fn edges(run: &Run, printed: usize, lines: &[Lines<'_>]) -> (usize, usize) {
    let Some(lines) = lines.get(run.file) else {
        return (0, 0);
    };
    let (mut from, mut to) = (run.printed, run.end());
    let weak = |index: usize| {
        let line = lines.get(run.line + index - run.printed);
        line.is_some_and(|line| weight(line) < EDGE_LETTERS)
    };
    if run.line > 0 && from > 0 {
        while from < to && weak(from) {
            from += 1;
        }
    }
    if run.line + run.len < lines.lines.len() && to < printed {
        while from < to && weak(to - 1) {
            to -= 1;
        }
    }
    (from, to)
}

/// Returns all runs through a line that occurs in few places.
fn find(printed: &[Printed<'_>], lines: &[Lines<'_>]) -> Vec<Run> {
    let wanted: HashSet<&str> = printed
        .iter()
        .flat_map(|line| line.texts.iter().map(|(_, text)| *text))
        .collect();
    let mut places: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (file, lines) in lines.iter().enumerate() {
        for (number, line) in lines.lines.iter().enumerate() {
            if let Some(line) = wanted.get(line) {
                let places = places.entry(line).or_default();
                if places.len() <= PLACES {
                    places.push((file, number));
                }
            }
        }
    }
    let is = |index: usize, file: usize, line: usize| {
        let there = lines.get(file).and_then(|lines| lines.get(line));
        printed.get(index).is_some_and(|printed| {
            let mut texts = printed.texts.iter();
            texts.any(|(whose, text)| {
                whose.is_none_or(|whose| whose == file) && Some(*text) == there
            })
        })
    };
    let mut runs: Vec<Run> = Vec::new();
    // Where the newest run ends, for each distance between line and output.
    let mut ends: HashMap<(usize, usize), usize> = HashMap::new();
    for (index, line) in printed.iter().enumerate() {
        for (whose, text) in &line.texts {
            let found = places.get(text).filter(|places| places.len() <= PLACES);
            for (file, number) in found.into_iter().flatten().copied() {
                let way = (file, number + printed.len() - index);
                if ends.get(&way).is_some_and(|end| *end > index)
                    || whose.is_some_and(|whose| whose != file)
                {
                    continue;
                }
                let mut before = 0;
                while before < index.min(number)
                    && is(index - before - 1, file, number - before - 1)
                {
                    before += 1;
                }
                let mut len = before + 1;
                while is(index - before + len, file, number - before + len) {
                    len += 1;
                }
                ends.insert(way, index - before + len);
                runs.push(Run {
                    file,
                    printed: index - before,
                    line: number - before,
                    len,
                });
            }
        }
    }
    runs
}
