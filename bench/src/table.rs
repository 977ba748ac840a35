//! Rows of results, printed as aligned text or as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use crate::samples::Samples;
use crate::units;

/// A row of a section. Cells that do not apply are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    what: String,
    /// The p50 or the only value, p99, p99.9, the worst, and the number of
    /// samples.
    cells: [String; 5],
    beside: Vec<String>,
}

/// The cells of a line.
type Cells = Vec<String>;

impl Row {
    /// Returns a row for a distribution.
    pub(crate) fn of(what: impl Into<String>, samples: &Samples) -> Self {
        let points = samples.points();
        let [p50, p99, p999, worst] =
            [points.p50, points.p99, points.p999, points.worst].map(units::duration);
        Self {
            what: what.into(),
            cells: [p50, p99, p999, worst, units::count(samples.count())],
            beside: Vec::new(),
        }
    }

    /// Returns a row for one value that is already formatted.
    pub(crate) fn value(what: impl Into<String>, value: impl Into<String>) -> Self {
        let mut row = Self {
            what: what.into(),
            ..Self::default()
        };
        let [first, ..] = &mut row.cells;
        *first = value.into();
        row
    }

    /// Adds a comparison with another duration.
    pub(crate) fn beside(self, name: &str, took: Duration, other: Duration) -> Self {
        self.against(name, took.as_secs_f64(), other.as_secs_f64())
    }

    /// Adds a comparison of two values with the same unit.
    pub(crate) fn against(mut self, name: &str, value: f64, other: f64) -> Self {
        if other > 0.0 {
            self.beside
                .push(format!("{} x {name}", units::number(value / other)));
        }
        self
    }
}

/// Returns a section's lines, with headings first. Columns that are empty in
/// all rows are left out.
fn lines(rows: &[Row]) -> Vec<Cells> {
    let distributions = rows
        .iter()
        .any(|row| row.cells.iter().skip(1).any(|cell| !cell.is_empty()));
    let first = if distributions { "p50" } else { "measured" };
    let heading = ["what", first, "p99", "p99.9", "worst", "n", "beside"];
    let keep = |column: usize| match column {
        0 | 1 => true,
        6 => rows.iter().any(|row| !row.beside.is_empty()),
        _ => distributions,
    };
    let kept = |cells: Vec<String>| -> Cells {
        let numbered = cells.into_iter().enumerate();
        numbered
            .filter(|(column, _)| keep(*column))
            .map(|(_, cell)| cell)
            .collect()
    };
    let mut lines = vec![kept(heading.map(String::from).to_vec())];
    for row in rows {
        let mut cells = vec![row.what.clone()];
        cells.extend(row.cells.iter().cloned());
        cells.push(row.beside.join("; "));
        lines.push(kept(cells));
    }
    lines
}

/// Returns the rows as text for a terminal.
pub(crate) fn text(rows: &[Row]) -> String {
    aligned(&lines(rows))
}

/// Returns the rows as Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    marked(&lines(rows))
}

/// Returns lines of cells as aligned text. The first line has the headings. The
/// first column is left-aligned, the others are right-aligned.
pub(crate) fn aligned(lines: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for line in lines {
        widths.resize(widths.len().max(line.len()), 0);
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for cells in lines {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Returns lines of cells as a Markdown table.
pub(crate) fn marked(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "| {} |", line.join(" | "));
        if n == 0 {
            let columns = line.len().saturating_sub(1);
            let _ = writeln!(text, "| --- |{}", " ---: |".repeat(columns));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_alone_have_one_column() {
        let rows = [
            Row::value("a", "1"),
            Row::value("b", "2").against("a", 2.0, 1.0),
        ];
        assert_eq!(
            markdown(&rows),
            "| what | measured | beside |\n| --- | ---: | ---: |\n| a | 1 |  |\n| b | 2 | 2 x a |\n"
        );
    }

    #[test]
    fn nothing_is_compared_with_nothing() {
        let row = Row::value("a", "1").against("an absent peer", 1.0, 0.0);
        assert_eq!(
            markdown(&[row]),
            "| what | measured |\n| --- | ---: |\n| a | 1 |\n"
        );
    }
}
