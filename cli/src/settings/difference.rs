//! The difference of two texts, in the format of `diff -u`.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

use crate::style::{self, paint};
use crate::text::escaped;

/// The longest part of a line that is shown, in characters.
const MAX_LINE: usize = 400;

/// Returns the lines of the difference; `None` is for no file.
pub(super) fn difference(name: &str, before: Option<&str>, after: Option<&str>) -> Vec<String> {
    let side = |text: Option<&str>| match text {
        Some(_) => escaped(name, MAX_LINE),
        None => "/dev/null".to_owned(),
    };
    let mut lines = vec![
        format!("--- {}", side(before)),
        format!("+++ {}", side(after)),
    ];
    let input = InternedInput::new(before.unwrap_or(""), after.unwrap_or(""));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let unified = diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input);
    let unified = unified.to_string();
    lines.extend(
        unified
            .lines()
            .map(|line| escaped(&line.replace('\t', "    "), MAX_LINE)),
    );
    lines
}

/// Returns a line of a difference in its colour.
pub(crate) fn coloured(line: &str) -> String {
    match line.as_bytes().first() {
        Some(b'+') => paint(style::GOOD, line),
        Some(b'-') => paint(style::BAD, line),
        Some(b'@') => paint(style::DIM, line),
        _ => line.to_owned(),
    }
}
