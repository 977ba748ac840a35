//! Lines with their numbers before them, as `cat -n`, `nl`, `grep -n`, `rg`,
//! `bat` and compilers print them.

use std::collections::HashMap;

use super::{File, Lines, Printed, weight};

/// The separators between a number and its line. Lines that follow each other
/// have the same style.
const STYLES: [&[&str]; 10] = [
    &["\t"],
    &[":", "-"],
    &[" "],
    &["  "],
    &[": "],
    &["   │ ", "  │ ", " │ ", "│ "],
    &[" | "],
    &["| ", "|"],
    &[". ", ") "],
    &["→"],
];

/// The styles in which a number may belong to another file, or may count only
/// the printed lines.
const FOREIGN: [&[&str]; 5] = [&["\t"], &[":", "-"], &[" "], &["  "], &[": "]];

/// The number of letters and digits that a place needs in addition to its
/// numbers.
const LETTERS: usize = 3;

/// The maximum number of lines that are compared to find a numbered part
/// elsewhere. A part that takes more is treated as if it may be anywhere.
const COMPARED: usize = 2_000_000;

/// Returns what a line of an output may be.
pub(super) fn parse<'a>(line: &'a str, files: &[File<'_>]) -> Printed<'a> {
    let mut printed = Printed {
        numbered: None,
        texts: vec![(None, line)],
    };
    // The prefixes of `diff`, and of Gemini's shell before the first line.
    for prefix in ["< ", "> ", "Output: "] {
        printed
            .texts
            .extend(line.strip_prefix(prefix).map(|text| (None, text)));
    }
    if let Some((file, rest)) = whose(line, files) {
        printed.numbered = number(rest.get(1..).unwrap_or_default())
            .filter(|(_, after)| after.starts_with([':', '-']))
            .map(|(number, after)| (file, number, after));
        if printed.numbered.is_none() {
            printed.texts.extend(rest.get(1..).map(|text| (file, text)));
        }
    } else {
        printed.numbered =
            number(line.trim_start_matches(' ')).map(|(number, after)| (None, number, after));
    }
    printed
}

/// Returns the file whose name begins a line, and the text after the name.
fn whose<'a>(line: &'a str, files: &[File<'_>]) -> Option<(Option<usize>, &'a str)> {
    let line = line.strip_prefix("./").unwrap_or(line);
    let after = |name: &String| {
        line.strip_prefix(name.as_str())
            .filter(|rest| rest.starts_with([':', '-']))
    };
    let found = files.iter().enumerate().flat_map(|(index, file)| {
        file.names
            .iter()
            .filter_map(after)
            .map(move |rest| (index, rest))
    });
    let found: Vec<(usize, &str)> = found.collect();
    // The longest name counts. A name of two files identifies neither.
    let (file, rest) = found.iter().min_by_key(|(_, rest)| rest.len())?;
    let mut same = found.iter().filter(|(_, other)| other.len() == rest.len());
    let is_one = same.all(|(other, _)| other == file);
    Some((is_one.then_some(*file), rest))
}

/// Returns a number, and the text after it.
fn number(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    (digits <= 7).then_some((number, rest))
}

/// Returns the line after a number in this style.
fn text<'a>(rest: &'a str, style: &[&str]) -> Option<&'a str> {
    let found = style.iter().find_map(|before| rest.strip_prefix(before));
    // The white space of an empty line is often trimmed.
    found.or_else(|| {
        let mut before = style.iter();
        before
            .any(|before| before.trim_end() == rest.trim_end())
            .then_some("")
    })
}

/// Returns the line after a number and a column.
fn text_after_column(rest: &str) -> Option<&str> {
    let (_, rest) = number(rest.strip_prefix(':')?)?;
    rest.strip_prefix(':')
}

/// Returns whether lines are distinctive enough that they do not agree by
/// accident.
pub(super) fn is_enough(lines: &Lines<'_>, from: usize, to: usize) -> bool {
    lines.weight(from, to) >= LETTERS
}

/// Marks the lines whose numbers and texts agree, and removes them from the
/// output. The other numbered lines get texts without the numbers.
pub(super) fn place(
    printed: &[&str],
    parsed: &mut [Printed<'_>],
    lines: &[Lines<'_>],
    seen: &mut [Vec<bool>],
) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    if parsed.iter().any(|line| line.numbered.is_some()) {
        for line in lines.iter().flat_map(|lines| &lines.lines) {
            *places.entry(line).or_default() += 1;
        }
    }
    let mut from = 0;
    while from < parsed.len() {
        let is_part = |index: usize| {
            parsed
                .get(index)
                .is_some_and(|line| line.numbered.is_some() || printed.get(index) == Some(&"--"))
        };
        let mut to = from;
        while is_part(to) {
            to += 1;
        }
        if let Some(section) = parsed.get_mut(from..to) {
            place_section(section, lines, &places, seen);
        }
        from = to.max(from + 1);
    }
}

fn place_section(
    section: &mut [Printed<'_>],
    lines: &[Lines<'_>],
    places: &HashMap<&str, usize>,
    seen: &mut [Vec<bool>],
) {
    let agrees = |line: &Printed<'_>, file: usize, style: &[&str]| {
        line.numbered.is_some_and(|(whose, number, rest)| {
            let there = lines.get(file).and_then(|lines| lines.get(number - 1));
            whose.is_none_or(|whose| whose == file)
                && there.is_some()
                && (there == text(rest, style)
                    || (whose.is_some() && there == text_after_column(rest)))
        })
    };
    let counted = |style: &&&[&str]| {
        let any = |line: &&Printed<'_>| (0..lines.len()).any(|file| agrees(line, file, style));
        section.iter().filter(any).count()
    };
    // The first of the styles that fit the most lines.
    let Some(style) = STYLES.iter().rev().max_by_key(counted) else {
        return;
    };
    // Which lines agree with which file.
    let table: Vec<Vec<bool>> = (0..lines.len())
        .map(|file| {
            section
                .iter()
                .map(|line| agrees(line, file, style))
                .collect()
        })
        .collect();
    let mut placed = vec![false; section.len()];
    for (file, (row, there)) in table.iter().zip(lines).enumerate() {
        let is_all = section
            .iter()
            .zip(row)
            .all(|(line, agrees)| *agrees || line.numbered.is_none());
        let full = row.iter().filter(|agrees| **agrees).count() >= LETTERS;
        // The numbered text may have been a part of the file, counted from its
        // beginning.
        let mut left = COMPARED;
        let is_elsewhere = is_all
            && (0..there.lines.len()).any(|shift| {
                let mut numbers = section
                    .iter()
                    .filter_map(|line| line.numbered.map(|(_, number, _)| number - 1));
                let first = numbers.clone().next().unwrap_or_default();
                shift != first
                    && numbers.all(|number| {
                        left = left.saturating_sub(1);
                        let moved = (number + shift).checked_sub(first);
                        left == 0 || moved.and_then(|moved| there.get(moved)) == there.get(number)
                    })
            });
        let own_letters = |from: usize, to: usize| -> usize {
            let lines = there.lines.get(from..to).unwrap_or_default().iter();
            let once = lines.filter(|line| places.get(*line) == Some(&1));
            once.map(|line| weight(line)).sum()
        };
        let mut from = 0;
        while from < section.len() {
            let number = |index: usize| section.get(index).and_then(|line| line.numbered);
            let mut to = from;
            while row.get(to) == Some(&true)
                && (to == from
                    || number(to).map(|line| line.1) == number(to - 1).map(|line| line.1 + 1))
            {
                to += 1;
            }
            let Some((whose, first, _)) = number(from).filter(|_| to > from) else {
                from += 1;
                continue;
            };
            let span = first - 1..first - 1 + (to - from);
            let letters = there.weight(span.start, span.end);
            let enough = match whose {
                Some(_) => letters > 0 || is_all,
                None if is_all => !is_elsewhere && (letters >= LETTERS || full),
                None => own_letters(span.start, span.end) >= LETTERS,
            };
            // The lines agree with another file as well.
            let shared = table.iter().enumerate().any(|(other, row)| {
                let own = (from..to).filter(|index| row.get(*index) == Some(&false));
                let own: usize = own
                    .filter_map(&number)
                    .map(|(_, number, _)| there.get(number - 1).map_or(0, weight))
                    .sum();
                other != file && own < 2
            });
            if enough
                && !shared
                && let Some(seen) = seen.get_mut(file)
            {
                seen.iter_mut()
                    .take(span.end)
                    .skip(span.start)
                    .for_each(|seen| *seen = true);
                placed
                    .iter_mut()
                    .take(to)
                    .skip(from)
                    .for_each(|placed| *placed = true);
            }
            from = to;
        }
    }
    for (line, placed) in section.iter_mut().zip(placed) {
        let Some((whose, _, rest)) = line.numbered else {
            continue;
        };
        match placed {
            true => line.texts.clear(),
            false => line.texts.extend(
                FOREIGN
                    .iter()
                    .filter_map(|style| Some((whose, text(rest, style)?))),
            ),
        }
    }
}
