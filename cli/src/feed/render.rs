//! An entry as a line in columns.

use anstyle::Style;
use touchmark_client::proto::events::{EditPhase, SessionPhase};
use touchmark_client::proto::{Author, Evidence, Millis, VersionKind};

use super::entry::{Burst, Entry, Note, Verb, Who};
use crate::style::{self, paint};
use crate::table::View;
use crate::text::{
    self, MAX_NAME, author, cut, date, escaped, path, time_of_day, time_or_day, width, wrapped,
};
use crate::versions;

/// The number of sessions that a remark names. The others are counted.
const NAMED: usize = 3;

/// The width of the longest verb.
const VERB: usize = 9;

/// The width of most line counts.
const COUNTS: usize = 9;

/// The gap between two columns.
const GAP: usize = 2;

/// The least number of columns for a path on one line with its remarks. With
/// less, the remarks are on lines below.
const LEAST: usize = 16;

/// The least number of columns for a path on one line with its line counts.
const LEAST_PATH: usize = 8;

/// The least number of columns for what is left of a remark.
const LEAST_REMARK: usize = 8;

/// The least number of columns with which an entry is one line: its remarks are
/// cut. Two of them are never cut: the command that brings back lost work, and the
/// reason why not all writes were seen.
const ONE_LINE: usize = 80;

/// A day in milliseconds.
const DAY: Millis = 86_400_000;

/// How the time of an entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// How long ago: the line will be drawn again.
    Age,
    /// The time of day: the line stays as it is.
    OfDay,
}

/// The widths of the columns.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    time: usize,
    who: usize,
    path: usize,
    pub(super) view: View,
}

impl Layout {
    /// Returns the layout for a terminal, or for a pipe or a file.
    pub(crate) fn new(view: View) -> Self {
        match view.columns {
            None => Self {
                time: 8,
                who: 14,
                path: 32,
                view,
            },
            Some(columns) => Self {
                time: 6,
                who: if columns < 100 { 10 } else { 14 },
                path: (columns * 2 / 9).clamp(LEAST, 32),
                view,
            },
        }
    }

    /// Returns an entry as one line without a line break at its end. On a narrow
    /// terminal remarks that do not fit are on lines below. No line is wider than
    /// the terminal. Names from outside are escaped (SEC-4).
    pub(crate) fn line(&self, entry: &Entry, time: Time) -> String {
        let (verb, verb_style) = verb(entry.verb);
        let who = cut(&who(&entry.who), self.who);
        let mut line = Line::default();
        line.cell(style::DIM, &self.time(entry.time, time), self.time);
        line.cell(who_style(&entry.who), &who, self.who);
        line.cell(verb_style, verb, VERB);
        let at = line.next();
        let counts = entry.lines.map(|lines| {
            let (added, removed) = (lines.added, lines.removed);
            [
                (style::GOOD, format!("+{added}")),
                (style::BAD, format!("-{removed}")),
            ]
        });
        let counted =
            |[added, removed]: &[(Style, String); 2]| GAP + width(&added.1) + 1 + width(&removed.1);
        let is_whole = |note: &Note| matches!(note, Note::Overwritten(Some(_)) | Note::Unseen(_));
        let is_wide = self.view.columns.is_some_and(|all| all >= ONE_LINE);
        let is_one = is_wide && !entry.notes.iter().any(is_whole);
        let mut notes: Vec<(Style, String)> = entry.notes.iter().map(note).collect();
        // Counts that leave too little room for the path are a remark.
        let beside = self
            .view
            .columns
            .map_or(usize::MAX, |all| all.saturating_sub(at + LEAST_PATH));
        let (counts, remark) = match counts {
            Some(counts) if entry.path.is_some() && counted(&counts) <= beside => {
                (Some(counts), None)
            }
            counts => (None, counts),
        };
        let remark = remark.map(|[(_, added), (_, removed)]| format!("{added} {removed}"));
        if let Some(burst) = &entry.burst {
            let counted = remark.as_ref().map_or(1, |text| GAP + width(text));
            let room = self.view.columns.filter(|_| is_wide);
            let room = room.map(|all| all.saturating_sub(at + counted));
            notes.insert(0, many(burst, room));
        }
        if let Some(text) = remark {
            let first = usize::from(entry.burst.is_some());
            notes.insert(first, (Style::new(), text));
        }
        if let Some(file) = &entry.path {
            let counted = counts.as_ref().map_or(0, counted);
            let room = self.room(at, counted, &notes, is_one);
            let room = room.unwrap_or(usize::MAX);
            line.cell(Style::new(), &cut(&path(file), room), self.path.min(room));
            // A narrow terminal has no column for the counts.
            let counts_room = match self.view.columns {
                Some(columns) if columns < 100 => 0,
                _ => COUNTS,
            };
            match counts {
                Some([added, removed]) => line.pair(added, removed, counts_room),
                None if counts_room > 0 => line.skip(counts_room),
                None => {}
            }
        }
        line.notes(&notes, self.view.columns, is_one);
        line.text
    }

    /// Returns the room for a path that begins at a column; `None` if there is
    /// no limit. Remarks that leave too little room are cut if the entry `is_one`
    /// line, else put below the line.
    fn room(
        &self,
        at: usize,
        counted: usize,
        notes: &[(Style, String)],
        is_one: bool,
    ) -> Option<usize> {
        let columns = self.view.columns?;
        let noted: usize = notes.iter().map(|(_, text)| GAP + width(text)).sum();
        let beside = columns.saturating_sub(at + counted + noted);
        let alone = columns.saturating_sub(at + counted);
        Some(match (beside >= LEAST, is_one) {
            (true, _) => beside,
            (false, true) => LEAST.min(alone),
            (false, false) => alone,
        })
    }

    fn time(&self, at: Millis, time: Time) -> String {
        let View { now, zone, columns } = &self.view;
        let is_old = now.saturating_sub(at) >= DAY;
        let text = match (time, columns) {
            (Time::Age, Some(_)) => self.view.age(at),
            (_, Some(_)) => time_or_day(at, is_old, zone),
            (_, None) if is_old => return date(at, zone),
            (_, None) => return time_of_day(at, zone),
        };
        format!("{text:>width$}", width = self.time)
    }
}

/// A line that is being written.
#[derive(Debug, Default)]
struct Line {
    text: String,
    /// The width of the text.
    width: usize,
    /// The blanks before the next text. They are added with it, so that no line
    /// ends in blanks.
    gap: usize,
}

/// The indentation of remarks below their line: the width of the time.
const BELOW: usize = 8;

impl Line {
    /// Returns the column at which the next text begins.
    fn next(&self) -> usize {
        self.width + self.gap
    }

    fn cell(&mut self, style: Style, text: &str, room: usize) {
        self.push(style, text);
        let used = width(text);
        self.gap += room.saturating_sub(used) + GAP;
    }

    fn pair(&mut self, one: (Style, String), other: (Style, String), room: usize) {
        let used = width(&one.1) + 1 + width(&other.1);
        self.push(one.0, &one.1);
        self.gap = 1;
        self.push(other.0, &other.1);
        self.gap = room.saturating_sub(used) + GAP;
    }

    fn skip(&mut self, room: usize) {
        self.gap += room + GAP;
    }

    fn push(&mut self, style: Style, text: &str) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(&" ".repeat(self.gap));
        self.text.push_str(&paint(style, text));
        self.width += self.gap + width(text);
        self.gap = 0;
    }

    /// Adds remarks, divided by commas. One that does not fit loses its middle if
    /// the entry `is_one` line, or is left out if that leaves too little of it; else
    /// it begins a line below. One that is wider
    /// than the terminal is wrapped between words, and a wider word loses its
    /// middle.
    fn notes(&mut self, notes: &[(Style, String)], columns: Option<usize>, is_one: bool) {
        let Some(columns) = columns else {
            for (number, (style, text)) in notes.iter().enumerate() {
                self.comma(number);
                self.push(*style, text);
            }
            return;
        };
        let room = columns.saturating_sub(BELOW + 1);
        let all: usize = notes.iter().map(|(_, text)| width(text) + GAP).sum();
        let all = all.saturating_sub(GAP);
        // Columns need not align if all remarks fit without that.
        if self.next() + all > columns {
            self.gap = columns.saturating_sub(self.width + all).max(GAP);
        }
        for (number, (style, text)) in notes.iter().enumerate() {
            let comma = usize::from(number + 1 < notes.len());
            let begins = self.next() + usize::from(number > 0) * GAP;
            let left = columns.saturating_sub(begins);
            if is_one && left < LEAST_REMARK.min(width(text) + comma) {
                return;
            }
            self.comma(number);
            if self.next() + width(text) + comma <= columns {
                self.push(*style, text);
                continue;
            }
            if is_one {
                self.push(*style, &cut(text, left));
                return;
            }
            // A name with one word before it is cut like the name alone.
            let parts = match text.split(' ').count() {
                0..=2 => vec![cut(text, room)],
                _ => wrapped(text, room, ""),
            };
            for part in parts {
                self.text.push('\n');
                self.width = 0;
                self.gap = BELOW;
                self.push(*style, &cut(&part, room));
            }
        }
    }

    fn comma(&mut self, number: usize) {
        if number > 0 {
            self.gap = 0;
            self.push(Style::new(), ",");
            self.gap = 1;
        }
    }
}

fn who(who: &Who) -> String {
    match who {
        Who::Author(by) => author(by),
        Who::Touchmark => "touchmark".into(),
    }
}

fn who_style(who: &Who) -> Style {
    match who {
        Who::Touchmark => style::DIM,
        Who::Author(by) => versions::colour(by),
    }
}

fn verb(verb: Verb) -> (&'static str, Style) {
    match verb {
        Verb::Version(kind) => match kind {
            VersionKind::Created => (versions::verb(kind), style::GOOD),
            VersionKind::Deleted => (versions::verb(kind), style::BAD),
            _ => (versions::verb(kind), style::BOLD),
        },
        Verb::Changed => ("changed", style::BOLD),
        Verb::Corrected => ("corrected", style::UNKNOWN),
        Verb::Confirmed => ("confirmed", style::DIM),
        Verb::Read => ("read", style::DIM),
        Verb::Reread => ("re-read", style::DIM),
        Verb::Edit(EditPhase::Begun) => ("editing", style::DIM),
        Verb::Edit(EditPhase::Committed) => ("committed", style::DIM),
        Verb::Edit(EditPhase::Aborted) => ("gave up", style::DIM),
        Verb::Edit(EditPhase::Lapsed) => ("lapsed", style::DIM),
        Verb::Session(SessionPhase::Opened) => ("began", style::DIM),
        Verb::Session(SessionPhase::Closed) => ("ended", style::DIM),
        Verb::Session(SessionPhase::Forgotten) => ("forgotten", style::DIM),
        Verb::Stale => ("is stale", style::WARN),
        Verb::Kept => ("kept", style::WARN),
        Verb::Degraded => ("degraded", style::WARN),
        Verb::Overflow => ("overflow", style::WARN),
        Verb::Ran => ("ran", style::BOLD),
        Verb::Undid => ("undid", style::BOLD),
        Verb::Redid => ("redid", style::BOLD),
        Verb::Restarted => ("restarted", style::DIM),
        Verb::Ended => ("ended", style::WARN),
    }
}

/// Returns what many changes have in common: the command, the number of files,
/// their directory and the branches. How many files they are says more than the
/// branches, and these are left out if all of it is wider than `room`. If it is
/// still wider, the directory is left out, and the command's text loses its
/// middle.
fn many(burst: &Burst, room: Option<usize>) -> (Style, String) {
    let files = text::count(burst.files.len() as u64, "file");
    let below = match directory(burst) {
        Some(directory) => format!(" in {}", escaped(&directory, MAX_NAME)),
        None => String::new(),
    };
    let branches = burst.branches.as_ref().map(|(before, after)| {
        let [before, after] = [before, after].map(|branch| escaped(branch, 40));
        format!(" ({before} to {after})")
    });
    let branches = branches.unwrap_or_default();
    let label = burst.label.as_ref();
    let command = label.map_or_else(String::new, |label| format!("{label}: "));
    let fits = |text: &String| room.is_none_or(|room| width(text) <= room);
    let texts = [
        format!("{command}{files}{below}{branches}"),
        format!("{command}{files}{below}"),
    ];
    let text = match (texts.iter().find(|text| fits(text)), label, room) {
        (Some(text), ..) => text.clone(),
        (None, Some(label), Some(room)) => {
            let left = room.saturating_sub(width(&files) + 2);
            format!("{}: {files}", cut(label, left))
        }
        (None, ..) => format!("{files}{below}"),
    };
    (Style::new(), text)
}

/// Returns the innermost directory of all files; `None` if it is the workspace.
fn directory(burst: &Burst) -> Option<String> {
    // What the first and the last name in order have in common, all have.
    let (first, last) = (burst.files.first()?, burst.files.last()?);
    let (first, last) = (first.to_string_lossy(), last.to_string_lossy());
    let same = first.split('/').zip(last.split('/'));
    let same: Vec<&str> = same
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one)
        .collect();
    (!same.is_empty()).then(|| same.join("/"))
}

fn note(note: &Note) -> (Style, String) {
    let dim = |text: &str| (style::DIM, text.to_owned());
    let plain = |text: String| (Style::new(), text);
    match note {
        Note::From(from) => plain(format!("from {}", path(from))),
        Note::Lines(range) => dim(&text::lines(*range)),
        Note::SinceChanged => (style::GOOD, "up to date again".into()),
        Note::More(more) => dim(&format!("and {}", text::count(*more as u64, "other file"))),
        Note::Was(Some(was)) => plain(format!("an earlier change was not by {}", author(was))),
        Note::Was(None) => plain("an earlier change has another author".into()),
        Note::Evidence(evidence) => dim(versions::evidence(*evidence)),
        Note::Command(None) => dim(versions::evidence(Evidence::Command)),
        Note::Command(Some(command)) => dim(&format!("by {command}")),
        Note::Provisional => dim("its edit is open"),
        Note::Overwritten(back) => {
            let back = back.as_ref();
            let back = back.map_or_else(String::new, |command| format!(": {command}"));
            (style::WARN, format!("replaced before it was seen{back}"))
        }
        Note::Mark(mark) => dim(mark),
        Note::StaleFor(sessions) => (style::WARN, format!("stale for {}", named(sessions))),
        Note::GoneFor(sessions) => (style::WARN, format!("gone for {}", named(sessions))),
        Note::Unseen(why) => (
            style::WARN,
            format!("not all writes seen: {}", escaped(why, MAX_NAME)),
        ),
        Note::Text(said) => plain(escaped(said, MAX_NAME)),
    }
}

fn named(sessions: &[Author]) -> String {
    let mut names: Vec<String> = sessions.iter().take(NAMED).map(author).collect();
    if sessions.len() > NAMED {
        names.push(format!("{} more", sessions.len() - NAMED));
    }
    names.join(", ")
}
