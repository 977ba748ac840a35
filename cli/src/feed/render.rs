//! An entry as a line in columns.

use jiff::tz::TimeZone;
use touchmark_client::proto::{Author, AuthorKind};

use super::{Entry, Note, Verb, Who};
use crate::style::{self, paint};
use crate::text::{self, MAX_NAME, author, cut, escaped, path, time_of_day};

/// The number of sessions that a remark names. The others are counted.
const NAMED: usize = 3;

/// Widths of the columns, in characters, and the time zone of the clock.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    who: usize,
    path: usize,
    /// Of the terminal: longer paths are cut to their column, and notes go on
    /// below, so that lines do not wrap.
    columns: Option<usize>,
    zone: TimeZone,
}

/// Time, verb, line counts and the gaps between all columns.
const FIXED: usize = 8 + 2 + 2 + VERB + 2 + 2 + COUNTS + 2;
const VERB: usize = 9;
const COUNTS: usize = 9;
/// What is left for notes on a narrow terminal.
const NOTES: usize = 22;

impl Layout {
    /// For a terminal of that many columns, or for a file.
    pub(crate) fn new(columns: Option<usize>, zone: TimeZone) -> Self {
        let who = 14;
        match columns {
            None => Self {
                who,
                path: 32,
                columns: None,
                zone,
            },
            Some(columns) => Self {
                who,
                path: columns.saturating_sub(FIXED + who + NOTES).clamp(16, 48),
                columns: Some(columns),
                zone,
            },
        }
    }

    /// One line, without its end; on a terminal more, where its notes are long. Names from outside are made harmless
    /// (SEC-4).
    pub(crate) fn line(&self, entry: &Entry) -> String {
        let who = cut(&who(&entry.who), self.who);
        let (verb, verb_style) = verb(entry.verb);
        let file = entry.path.as_ref().map(path).unwrap_or_default();
        let file = match self.columns {
            Some(_) => cut(&file, self.path),
            None => file,
        };
        let (added, removed) = match entry.lines {
            Some(lines) => (format!("+{}", lines.added), format!("-{}", lines.removed)),
            None => (String::new(), String::new()),
        };
        let counts = if entry.lines.is_some() {
            format!(
                "{} {}",
                paint(style::GOOD, &added),
                paint(style::BAD, &removed)
            )
        } else {
            String::new()
        };
        let columns = [
            Column::new(
                paint(style::DIM, &time_of_day(entry.time, &self.zone)),
                8,
                8,
            ),
            Column::new(paint(who_style(&entry.who), &who), length(&who), self.who),
            Column::new(paint(verb_style, verb), length(verb), VERB),
            Column::new(file.clone(), length(&file), self.path),
            Column::new(
                counts,
                entry
                    .lines
                    .map_or(0, |_| length(&added) + 1 + length(&removed)),
                COUNTS,
            ),
        ];
        let notes: Vec<String> = entry.notes.iter().map(note).collect();
        let mut line = String::new();
        let mut gap = 0;
        for column in &columns {
            if column.width > 0 {
                line.push_str(&" ".repeat(gap));
                line.push_str(&column.text);
                gap = 0;
            }
            // Gaps are written before the next text, so that no line ends
            // in spaces.
            gap += column.room.saturating_sub(column.width) + 2;
        }
        self.add(&mut line, gap, &notes);
        line
    }

    /// Adds notes: behind the line, or below it where they do not fit. One that
    /// is too long by itself, as a command to be copied, wraps.
    fn add(&self, line: &mut String, gap: usize, notes: &[String]) {
        let mut at = shown(line);
        for (number, note) in notes.iter().enumerate() {
            let (comma, gap) = match number {
                0 => ("", gap),
                _ => (",", 1),
            };
            let needed =
                at + comma.len() + gap + shown(note) + usize::from(number + 1 < notes.len());
            line.push_str(comma);
            if self.columns.is_some_and(|columns| needed > columns) {
                line.push('\n');
                at = BELOW;
                line.push_str(&" ".repeat(BELOW));
            } else {
                at += comma.len() + gap;
                line.push_str(&" ".repeat(gap));
            }
            line.push_str(note);
            at += shown(note);
        }
    }
}

/// Where notes begin that stand below their line: behind the time.
const BELOW: usize = 10;

/// The characters that a painted text shows.
fn shown(text: &str) -> usize {
    length(&anstream::adapter::strip_str(text).to_string())
}

/// A painted text, the characters it shows, and the room it has.
struct Column {
    text: String,
    width: usize,
    room: usize,
}

impl Column {
    fn new(text: String, width: usize, room: usize) -> Self {
        Self { text, width, room }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn who(who: &Who) -> String {
    match who {
        Who::Author(by) => author(by),
        Who::Touchmark => "touchmark".into(),
    }
}

fn who_style(who: &Who) -> anstyle::Style {
    match who {
        Who::Touchmark => style::DIM,
        Who::Author(by) => match by.kind {
            AuthorKind::User => style::USER,
            AuthorKind::Agent => style::AGENT,
            AuthorKind::Unknown => style::UNKNOWN,
        },
    }
}

fn verb(verb: Verb) -> (&'static str, anstyle::Style) {
    match verb {
        Verb::Created => ("created", style::GOOD),
        Verb::Edited => ("edited", style::BOLD),
        Verb::Deleted => ("deleted", style::BAD),
        Verb::Renamed => ("renamed", style::BOLD),
        Verb::Corrected => ("corrected", style::UNKNOWN),
        Verb::Confirmed => ("confirmed", style::DIM),
        Verb::Read => ("read", style::DIM),
        Verb::Reread => ("re-read", style::DIM),
        Verb::Editing => ("editing", style::DIM),
        Verb::Committed => ("committed", style::DIM),
        Verb::Aborted => ("gave up", style::DIM),
        Verb::Lapsed => ("lapsed", style::DIM),
        Verb::Opened => ("began", style::DIM),
        Verb::Closed => ("ended", style::DIM),
        Verb::Forgotten => ("forgotten", style::DIM),
        Verb::Stale => ("is stale", style::WARN),
        Verb::Kept => ("kept", style::WARN),
        Verb::Degraded => ("degraded", style::WARN),
        Verb::Overflow => ("overflow", style::WARN),
        Verb::Ran => ("ran", style::DIM),
    }
}

fn note(note: &Note) -> String {
    let dim = |text: &str| paint(style::DIM, text);
    match note {
        Note::From(from) => format!("from {}", path(from)),
        Note::Lines(range) if range.start == range.end => dim(&format!("line {}", range.start)),
        Note::Lines(range) => dim(&format!("lines {}-{}", range.start, range.end)),
        Note::SinceChanged => paint(style::GOOD, "up to date again"),
        Note::More(more) => dim(&format!("and {}", text::count(*more as u64, "other file"))),
        Note::Was(Some(was)) => format!("an earlier change was not by {}", author(was)),
        Note::Was(None) => "an earlier change has another author".into(),
        Note::Marked => dim("marked"),
        Note::Command => dim("by a command"),
        Note::Editor => dim("saved in an editor"),
        Note::Process => dim("seen by the kernel"),
        Note::Gap => dim("while nobody watched"),
        Note::Late => dim("declared afterwards"),
        Note::Provisional => dim("its edit is open"),
        Note::Overwritten(back) => {
            let back = back.as_ref();
            let back = back.map_or_else(String::new, |command| format!(": {command}"));
            paint(style::WARN, "replaced before it was seen") + &back
        }
        Note::Unobserved => dim("never seen on disk"),
        Note::Formatted => dim("by a formatter after the edit"),
        Note::StaleFor(sessions) => paint(style::WARN, &format!("stale for {}", named(sessions))),
        Note::GoneFor(sessions) => paint(style::WARN, &format!("gone for {}", named(sessions))),
        Note::Text(said) => escaped(said, MAX_NAME),
    }
}

fn named(sessions: &[Author]) -> String {
    let mut names: Vec<String> = sessions.iter().take(NAMED).map(author).collect();
    if sessions.len() > NAMED {
        names.push(format!("{} more", sessions.len() - NAMED));
    }
    names.join(", ")
}
