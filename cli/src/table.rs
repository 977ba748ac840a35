//! Tables that fit the terminal.
//!
//! A table has a list of [`Step`]s. Where its rows are wider than the terminal,
//! the steps are taken in their order until the rows fit. So the list says which
//! column gives way first. In a pipe or a file nothing is shortened.
//!
//! Widths are counted in columns of the terminal.

use std::collections::BTreeSet;

use anstyle::Style;
use jiff::tz::TimeZone;
use touchmark_client::proto::Millis;

use crate::style::paint;
use crate::system::terminal;
use crate::text::{age, ago, cut, now, start, width, wrapped, zone};

/// A text of a table, and its style.
pub(crate) type Cell = (Style, String);

/// The gap between two columns.
const GAP: usize = 2;

/// The least number of columns next to a row for its remarks. With less, they
/// are put below the row.
const BESIDE: usize = 30;

/// The maximum number of columns for remarks that make a first column narrower.
const MOST_BESIDE: usize = 40;

/// How far remarks below a row are indented.
const BELOW: usize = 4;

/// The narrowest that a column becomes when all steps were not enough.
const NARROWEST: usize = 4;

/// What the output depends on in addition to the data.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The current time.
    pub(crate) now: Millis,
    /// The time zone of the user.
    pub(crate) zone: TimeZone,
    /// The width of the terminal; `None` in a pipe or a file.
    pub(crate) columns: Option<usize>,
}

impl View {
    /// Returns the view of this process's standard output.
    pub(crate) fn here() -> Self {
        Self {
            now: now(),
            zone: zone(),
            columns: terminal::columns(),
        }
    }

    /// Returns how long ago a time was, such as `3 min ago`.
    pub(crate) fn ago(&self, time: Millis) -> String {
        ago(time, self.now, &self.zone)
    }

    /// Returns how long ago a time was, such as `3 min`.
    pub(crate) fn age(&self, time: Millis) -> String {
        age(time, self.now, &self.zone)
    }

    /// Returns a view with `taken` columns less.
    pub(crate) fn without(&self, taken: usize) -> Self {
        Self {
            columns: self.columns.map(|columns| columns.saturating_sub(taken)),
            ..self.clone()
        }
    }
}

/// How one column becomes narrower. The first number is the column's, from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Its texts lose their middle, down to this width at the least.
    Middle(usize, usize),
    /// Its texts lose their end. At least this many characters stay, and as
    /// many as keep different texts different: the beginning of an id names it.
    Start(usize, usize),
    /// The column is left out.
    Out(usize),
}

/// A table's rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    steps: &'static [Step],
    has_remarks: bool,
}

impl Table {
    /// Returns a table whose columns become narrower in this order.
    pub(crate) const fn new(steps: &'static [Step]) -> Self {
        Self {
            steps,
            has_remarks: false,
        }
    }

    /// Returns the table with remarks as its last column: they are not cut, but
    /// continue on further lines.
    pub(crate) const fn with_remarks(self) -> Self {
        Self {
            has_remarks: true,
            ..self
        }
    }

    /// Returns one text for each row, without a line break at its end. Each
    /// column is as wide as its widest text. Remarks may add lines.
    pub(crate) fn lines(
        self,
        rows: impl IntoIterator<Item = Vec<Cell>>,
        columns: Option<usize>,
    ) -> Vec<String> {
        let mut rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let remarks: Vec<Option<Cell>> = match self.has_remarks {
            true => rows.iter_mut().map(Vec::pop).collect(),
            false => rows.iter().map(|_| None).collect(),
        };
        if let Some(columns) = columns {
            self.leave_room(&mut rows, &remarks, columns);
            self.fit(&mut rows, columns);
        }
        let widths = widths(&rows);
        let lines = rows.iter().zip(remarks);
        let lines = lines.map(|(row, remark)| line(row, &widths, remark, columns));
        lines.collect()
    }

    /// Returns the beginning of a line for each row: its columns, padded to
    /// their widths, and the gap after the last one.
    pub(crate) fn heads(self, rows: &[Vec<Cell>]) -> Vec<String> {
        let widths = widths(rows);
        let heads = rows.iter().map(|row| {
            let (head, gap) = padded(row, &widths);
            head + &" ".repeat(gap)
        });
        heads.collect()
    }

    /// Cuts a column in the middle, as the first step says, if that makes room for
    /// the remarks next to their rows.
    fn leave_room(self, rows: &mut [Vec<Cell>], remarks: &[Option<Cell>], columns: usize) {
        let remarks = remarks.iter().flatten().map(|(_, text)| width(text));
        let remarks = remarks.max().unwrap_or_default().min(MOST_BESIDE);
        let Some(Step::Middle(column, least)) = self.steps.first().filter(|_| remarks > 0) else {
            return;
        };
        let widths = widths(rows);
        let over = (total(&widths) + GAP + remarks).saturating_sub(columns);
        let widest = widths.get(*column).copied().unwrap_or_default();
        if over > 0 && over <= widest.saturating_sub(*least) {
            Step::Middle(*column, *least).take(rows, over);
        }
    }

    fn fit(self, rows: &mut [Vec<Cell>], columns: usize) {
        for step in self.steps {
            let over = total(&widths(rows)).saturating_sub(columns);
            if over == 0 {
                return;
            }
            step.take(rows, over);
        }
        loop {
            let widths = widths(rows);
            let over = total(&widths).saturating_sub(columns);
            let widest = (0..widths.len()).max_by_key(|at| widths[*at]);
            match widest.filter(|at| over > 0 && widths[*at] > NARROWEST) {
                Some(at) => Step::Middle(at, NARROWEST).take(rows, over),
                None => return,
            }
        }
    }
}

impl Step {
    /// Makes one column narrower by `over`, or by as much as the step allows.
    fn take(self, rows: &mut [Vec<Cell>], over: usize) {
        let (Self::Middle(column, _) | Self::Start(column, _) | Self::Out(column)) = self;
        let texts = || rows.iter().filter_map(|row| row.get(column));
        let widest = texts().map(|(_, text)| width(text)).max();
        let room = widest.unwrap_or_default().saturating_sub(over);
        let least = match self {
            Self::Start(_, least) => {
                let texts: Vec<&str> = texts().map(|(_, text)| text.as_str()).collect();
                distinct(&texts, least)
            }
            Self::Middle(_, least) => least,
            Self::Out(_) => 0,
        };
        for (_, text) in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            match self {
                Self::Middle(..) => *text = cut(text, room.max(least)),
                Self::Start(..) => *text = start(text, room.max(least)).to_owned(),
                Self::Out(_) => text.clear(),
            }
        }
    }
}

/// Returns the least width, from `least` on, in which different texts begin
/// differently.
fn distinct(texts: &[&str], least: usize) -> usize {
    let all: BTreeSet<&str> = texts.iter().copied().collect();
    let widest = all.iter().map(|text| width(text)).max();
    let mut widths = least..widest.unwrap_or_default().max(least);
    let found = widths.find(|most| {
        let begun: BTreeSet<&str> = all.iter().map(|text| start(text, *most)).collect();
        begun.len() == all.len()
    });
    found.unwrap_or(widths.end)
}

/// Returns the width of each column.
fn widths(rows: &[Vec<Cell>]) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column| {
        let texts = rows.iter().filter_map(|row| row.get(column));
        let widths = texts.map(|(_, text): &Cell| width(text));
        widths.max().unwrap_or_default()
    };
    (0..count).map(widest).collect()
}

/// Returns the width of a row. Columns without any text take no room.
fn total(widths: &[usize]) -> usize {
    let taken = widths.iter().filter(|width| **width > 0);
    let with_gaps: usize = taken.map(|width| width + GAP).sum();
    with_gaps.saturating_sub(GAP)
}

/// Returns a row's columns, and the number of blanks between them and what
/// follows.
fn padded(row: &[Cell], widths: &[usize]) -> (String, usize) {
    let mut line = String::new();
    // Gaps are added before the next text, so that no line ends in blanks.
    let mut gap = 0;
    for ((style, text), room) in row.iter().zip(widths) {
        if *room == 0 {
            continue;
        }
        if !text.is_empty() {
            line.push_str(&" ".repeat(gap));
            line.push_str(&paint(*style, text));
            gap = 0;
        }
        gap += room - width(text) + GAP;
    }
    (line, gap)
}

fn line(row: &[Cell], widths: &[usize], remark: Option<Cell>, columns: Option<usize>) -> String {
    let (mut line, gap) = padded(row, widths);
    let Some((style, remark)) = remark.filter(|(_, text)| !text.is_empty()) else {
        return line;
    };
    let at = match total(widths) {
        0 => 0,
        taken => taken + GAP,
    };
    let Some(columns) = columns else {
        return line + &" ".repeat(gap) + &paint(style, &remark);
    };
    let beside = columns.saturating_sub(at);
    let (indent, room, begins_below) = match width(&remark) <= beside || beside >= BESIDE {
        true => (at, beside, false),
        false => (BELOW, columns.saturating_sub(BELOW), true),
    };
    for (number, part) in wrapped(&remark, room, "").iter().enumerate() {
        if number > 0 || begins_below {
            line.push('\n');
            line.push_str(&" ".repeat(indent));
        } else {
            line.push_str(&" ".repeat(gap));
        }
        // Only a single word is wider than the room.
        line.push_str(&paint(style, &cut(part, room)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str]) -> Vec<Cell> {
        let cells = texts.iter().map(|text| (Style::new(), (*text).to_owned()));
        cells.collect()
    }

    #[test]
    fn columns_align_and_no_line_ends_in_blanks() {
        let plain = Table::new(&[]);
        let rows = vec![row(&["a", "bb", "c"]), row(&["aaa", "", ""])];
        assert_eq!(plain.lines(rows, None), ["a    bb  c", "aaa"]);
        let rows = vec![row(&["目録", "bb", ""]), row(&["e\u{301}", "b", ""])];
        assert_eq!(plain.lines(rows, None), ["目録  bb", "e\u{301}     b"]);
        let rows = [row(&["a", "bb"]), row(&["aaa", ""])];
        assert_eq!(plain.heads(&rows), ["a    bb  ", "aaa      "]);
        // A column without any text takes no room, one text is enough for it.
        let rows = vec![row(&["a", "", "b", "x"]), row(&["a", "", "", "y"])];
        assert_eq!(plain.lines(rows, None), ["a  b  x", "a     y"]);
    }

    #[test]
    fn steps_are_taken_in_their_order_until_the_rows_fit() {
        const TABLE: Table = Table::new(&[Step::Start(1, 4), Step::Out(2), Step::Middle(0, 5)]);
        let lines = |columns| {
            let rows = vec![
                row(&["src/parser.rs", "01234567", "12 reads"]),
                row(&["a", "01239999", "1 read"]),
            ];
            TABLE.lines(rows, Some(columns))
        };
        assert_eq!(
            lines(33),
            [
                "src/parser.rs  01234567  12 reads",
                "a              01239999  1 read"
            ]
        );
        // An id keeps what distinguishes it from the others.
        assert_eq!(
            lines(32),
            [
                "src/parser.rs  0123456  12 reads",
                "a              0123999  1 read"
            ]
        );
        assert_eq!(lines(29), ["src/parser.rs  01234", "a              01239"]);
        assert_eq!(lines(15), ["sr…er.rs  01234", "a         01239"]);
        // Beyond the steps the widest column is cut.
        assert_eq!(lines(11), ["s….rs  0…34", "a      0…39"]);
    }

    #[test]
    fn remarks_continue_beside_their_row_or_below_it() {
        const TABLE: Table = Table::new(&[Step::Middle(0, 8)]).with_remarks();
        let lines = |columns| {
            let rows = vec![row(&[
                "src/a.rs",
                "changed by claude-1, and still being written",
            ])];
            TABLE.lines(rows, columns).join("\n")
        };
        assert_eq!(
            lines(None),
            "src/a.rs  changed by claude-1, and still being written"
        );
        assert_eq!(
            lines(Some(42)),
            "src/a.rs  changed by claude-1, and still\n          being written"
        );
        assert_eq!(
            lines(Some(30)),
            "src/a.rs\n    changed by claude-1, and\n    still being written"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        const TABLE: Table = Table::new(&[Step::Out(0)]).with_remarks();
        for columns in 14..90 {
            let rows = vec![
                row(&[
                    "目録",
                    "目録/e\u{301}/long-long-long.rs",
                    "12 reads",
                    "目録目録目録 x",
                ]),
                row(&[
                    "a",
                    "b",
                    "1 read",
                    "said by somebody-with-a-name-of-forty-characters",
                ]),
            ];
            for line in TABLE.lines(rows, Some(columns)).join("\n").lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
    }
}
