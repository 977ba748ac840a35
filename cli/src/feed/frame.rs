//! The part of a terminal that `touchmark watch` redraws: the header, what is the
//! case now, and the newest entries. Their times age. Entries that no longer fit on the screen are
//! written above it a last time, with the time of day, and scroll away.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::entry::Entry;
use super::header::Header;
use super::now::Now;
use super::render::{Layout, Time};
use crate::table::View;

/// Ends a line: deletes what an earlier frame has left of it.
const END: &str = "\u{1b}[K\n";

/// Deletes everything below the cursor.
const BELOW: &str = "\u{1b}[J";

/// Deletes the screen and goes to its upper left corner.
const ALL: &str = "\u{1b}[2J\u{1b}[H";

/// The number of rows of a screen, and of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// The header and the newest entries.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// Shown above the entries; `None` shows nothing.
    pub(crate) header: Option<Header>,
    /// Shown below the header, where there is one.
    pub(crate) now: Now,
    entries: VecDeque<Entry>,
    /// The lines on the screen, and the size that the screen had.
    drawn: Option<(Vec<String>, Size)>,
}

impl Frame {
    /// Adds an entry below the others.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// Returns what to write to the terminal, which is nothing if all lines are
    /// as they were. `hint` is shown while there is no entry.
    pub(crate) fn draw(&mut self, view: &View, size: Size, hint: &[String]) -> String {
        let view = View {
            columns: Some(size.columns),
            ..view.clone()
        };
        let layout = Layout::new(view);
        let rendered = |entry: &Entry, time| -> Vec<String> {
            let text = layout.line(entry, time);
            text.lines().map(str::to_owned).collect()
        };
        let header = self
            .header
            .iter()
            .map(|header| header.line(Some(size.columns)));
        let mut lines: Vec<String> = header.collect();
        if !lines.is_empty() {
            let now = self.now.lines(&layout.view, size.rows);
            let is_empty = now.is_empty();
            lines.extend(now);
            // An empty line divides the feed from it.
            lines.extend((!is_empty).then(String::new));
        }
        // The cursor is in a row below the frame.
        let mut room = size.rows.saturating_sub(lines.len() + 1);
        let mut shown: VecDeque<Vec<String>> = VecDeque::new();
        for entry in self.entries.iter().rev() {
            let entry = rendered(entry, Time::Age);
            match room.checked_sub(entry.len()) {
                Some(left) => room = left,
                None => break,
            }
            shown.push_front(entry);
        }
        let gone = self.entries.len() - shown.len();
        let gone: Vec<Entry> = self.entries.drain(..gone).collect();
        lines.extend(shown.into_iter().flatten());
        if self.entries.is_empty() {
            lines.extend(hint.iter().take(room).cloned());
        }
        let mut text = String::new();
        match &self.drawn {
            Some((before, of)) if *of == size => {
                if gone.is_empty() && *before == lines {
                    return text;
                }
                if !before.is_empty() {
                    // Writing to a string cannot fail.
                    let _ = write!(text, "\r\u{1b}[{}A", before.len());
                }
            }
            // The terminal has rearranged the lines.
            Some(_) => text.push_str(ALL),
            None => {}
        }
        let gone = gone.iter().flat_map(|entry| rendered(entry, Time::OfDay));
        for line in gone.chain(lines.iter().cloned()) {
            text.push_str(&line);
            text.push_str(END);
        }
        text.push_str(BELOW);
        self.drawn = Some((lines, size));
        text
    }
}
