//! Rows of results, printed aligned or as Markdown.

use std::fmt::Write as _;
use std::time::Duration;

use crate::samples::Samples;

/// One line of the table. Cells that make no sense for it are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    what: String,
    cells: [String; 3],
    count: String,
    floor: String,
    multiple: String,
    goal: String,
}

/// Results in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    sections: Vec<(String, Vec<Row>)>,
}

const HEADINGS: [&str; 8] = [
    "what", "p50", "p99", "p99.9", "n", "floor", "x floor", "goal",
];

impl Row {
    /// A distribution.
    pub(crate) fn of(what: &str, samples: &Samples) -> Self {
        let points = samples.points();
        Self {
            what: what.into(),
            cells: [points.p50, points.p99, points.p999].map(duration),
            count: samples.count().to_string(),
            ..Self::default()
        }
    }

    /// One value, already in words.
    pub(crate) fn value(what: &str, value: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            cells: [value.into(), String::new(), String::new()],
            ..Self::default()
        }
    }

    /// Compares a duration with its floor.
    pub(crate) fn over(mut self, name: &str, took: Duration, floor: Duration) -> Self {
        self.floor = format!("{name} {}", duration(floor));
        self.multiple = ratio(took.as_secs_f64(), floor.as_secs_f64());
        self
    }

    /// Compares rates, or anything of one unit.
    pub(crate) fn against(mut self, name: &str, value: f64, floor: f64) -> Self {
        self.floor = name.into();
        self.multiple = ratio(value, floor);
        self
    }

    pub(crate) fn goal(mut self, goal: &str) -> Self {
        self.goal = goal.into();
        self
    }

    fn columns(&self) -> [&str; 8] {
        let [p50, p99, p999] = &self.cells;
        [
            &self.what,
            p50,
            p99,
            p999,
            &self.count,
            &self.floor,
            &self.multiple,
            &self.goal,
        ]
    }
}

impl Table {
    pub(crate) fn section(&mut self, title: &str, rows: Vec<Row>) {
        if !rows.is_empty() {
            self.sections.push((title.into(), rows));
        }
    }

    /// For a terminal.
    pub(crate) fn text(&self) -> String {
        let mut widths = HEADINGS.map(str::len);
        for (_, rows) in &self.sections {
            for row in rows {
                for (width, cell) in widths.iter_mut().zip(row.columns()) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let mut text = String::new();
        line(&mut text, HEADINGS, widths);
        for (title, rows) in &self.sections {
            let _ = writeln!(text, "\n{title}");
            for row in rows {
                line(&mut text, row.columns(), widths);
            }
        }
        text
    }

    /// For a document.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for (title, rows) in &self.sections {
            let _ = writeln!(text, "## {title}\n\n| {} |", HEADINGS.join(" | "));
            let _ = writeln!(text, "| --- |{}", " ---: |".repeat(HEADINGS.len() - 1));
            for row in rows {
                let _ = writeln!(text, "| {} |", row.columns().join(" | "));
            }
            text.push('\n');
        }
        text
    }
}

/// The first column to the left, the others to the right.
fn line(text: &mut String, cells: [&str; 8], widths: [usize; 8]) {
    let mut line = String::new();
    for (column, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
        let _ = match column {
            0 => write!(line, "{cell:<width$}"),
            _ => write!(line, "  {cell:>width$}"),
        };
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// Three digits that mean something.
pub(crate) fn duration(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    match micros {
        micros if micros < 100.0 => format!("{micros:.1} us"),
        micros if micros < 10_000.0 => format!("{micros:.0} us"),
        micros if micros < 100_000.0 => format!("{:.1} ms", micros / 1e3),
        micros => format!("{:.0} ms", micros / 1e3),
    }
}

fn ratio(value: f64, floor: f64) -> String {
    if floor > 0.0 {
        format!("{:.2}", value / floor)
    } else {
        String::new()
    }
}
