//! What was done and which versions it made, in one order, and as lines of a
//! table.

use std::collections::{BTreeSet, VecDeque};

use anstyle::Style;
use touchmark_client::blocking::Client;
use touchmark_client::proto::activity::{Activity, ActivityKind, ActivityList};
use touchmark_client::proto::history::LogEntry;
use touchmark_client::proto::{At, AuthorKind, Evidence, FileMode, LineCounts, RelPath, Version};

use crate::output::Outcome;
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{MAX_NAME, called, count, counts, cut, escaped, path, phrase, width};
use crate::versions::{By, WHO, colour, name, remarks, verb, who};

/// Name, time, author, what happened, to what, the edit or the number of files,
/// lines.
const TABLE: Table = Table::new(&[
    Step::Middle(4, 24),
    Step::Middle(2, 10),
    Step::Middle(4, 12),
    Step::Out(5),
]);

/// The columns between two others.
const GAP: usize = 2;

/// The narrowest that the text of an action becomes. It loses its middle then.
const NARROWEST: usize = 12;

/// Returns what was done of some kinds since a moment, the newest first.
pub(crate) fn actions(
    client: &Client,
    kinds: &[ActivityKind],
    since: Option<&At>,
) -> Outcome<Vec<Activity>> {
    let mut ask = ActivityList {
        kinds: Some(kinds.to_vec()),
        since: since.cloned(),
        ..ActivityList::default()
    };
    let mut all = Vec::new();
    loop {
        let answer = client.call(ask.clone())?;
        all.extend(answer.rows);
        ask.before = answer.more;
        if ask.before.is_none() {
            return Ok(all);
        }
    }
}

/// A row of the log.
#[derive(Debug)]
pub(crate) enum LogRow {
    /// A version of a file.
    Version(LogEntry),
    /// Something else that was done.
    Action(ActionRow),
}

/// Something that was done, and what it did to files.
#[derive(Debug)]
pub(crate) struct ActionRow {
    /// The daemon's row.
    pub(crate) row: Activity,
    /// The number of files of the versions that it made; `None` if it made none.
    pub(crate) files: Option<u32>,
    /// The versions that it made, if they are no rows themselves.
    pub(crate) made: Vec<LogEntry>,
    paths: BTreeSet<RelPath>,
    lines: Option<LineCounts>,
}

impl From<Activity> for ActionRow {
    fn from(row: Activity) -> Self {
        Self {
            row,
            files: None,
            made: Vec::new(),
            paths: BTreeSet::new(),
            lines: None,
        }
    }
}

impl ActionRow {
    /// Returns whether it made a version.
    fn made(&self, version: &Version) -> bool {
        let row = &self.row;
        match row.kind {
            ActivityKind::Command => row.name.is_some() && row.name == version.command,
            ActivityKind::Undo | ActivityKind::Redo | ActivityKind::Restore => {
                let Some(begun) = row.begun else {
                    return false;
                };
                let paths = row.paths.as_deref().unwrap_or_default();
                let is_cut = row.files.is_some_and(|files| files as usize > paths.len());
                version.author.kind == AuthorKind::User
                    && (begun.n < version.clock.n && version.clock.n <= row.clock.n)
                    && (is_cut || paths.contains(&version.path))
            }
            _ => false,
        }
    }

    fn count(&mut self, entry: &LogEntry) {
        self.paths.insert(entry.version.path.clone());
        self.files = u32::try_from(self.paths.len()).ok();
        if let Some(more) = entry.lines {
            let sum = self.lines.get_or_insert(LineCounts {
                added: 0,
                removed: 0,
            });
            sum.added = sum.added.saturating_add(more.added);
            sum.removed = sum.removed.saturating_add(more.removed);
        }
    }
}

impl LogRow {
    /// Returns whether this author did it.
    pub(crate) fn is_by(&self, by: &By) -> bool {
        match self {
            Self::Version(entry) => by.is(&entry.version.author, entry.version.evidence),
            Self::Action(ActionRow { row, .. }) => match by {
                By::Me => row.session.is_none() && row.doubt != Some(true),
                By::Command => row.kind == ActivityKind::Command,
                By::Session(session) => row.session.as_ref() == Some(session),
            },
        }
    }
}

/// Joins what was done and versions, page by page.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// What is not among the rows yet, the newest first.
    actions: VecDeque<ActionRow>,
    /// The rows that are not complete yet.
    rows: VecDeque<LogRow>,
    /// Whether each version is a row, also of those that an action made.
    unfolded: bool,
}

impl Timeline {
    /// Returns the timeline of these actions, the newest first.
    pub(crate) fn new(actions: Vec<Activity>, unfolded: bool) -> Self {
        Self {
            actions: actions.into_iter().map(ActionRow::from).collect(),
            rows: VecDeque::new(),
            unfolded,
        }
    }

    /// Adds the next older versions. Returns the rows that no older version
    /// belongs to, the newest first; all of them if these were the last.
    pub(crate) fn take(&mut self, entries: Vec<LogEntry>, last: bool) -> Vec<LogRow> {
        let oldest = match entries.last() {
            Some(entry) if !last => entry.version.clock.n,
            _ => 0,
        };
        for entry in entries {
            self.advance(entry.version.clock.n);
            let rows = self.rows.iter_mut().rev();
            let shown = rows.filter_map(|row| match row {
                LogRow::Action(action) => Some(action),
                LogRow::Version(_) => None,
            });
            // A command that ended in the same moment may be older in the list.
            let mut all = shown.chain(&mut self.actions);
            let maker = all.find(|action| action.made(&entry.version));
            match maker {
                Some(maker) => {
                    maker.count(&entry);
                    match self.unfolded {
                        true => self.rows.push_back(LogRow::Version(entry)),
                        false => maker.made.push(entry),
                    }
                }
                None => self.rows.push_back(LogRow::Version(entry)),
            }
        }
        self.advance(oldest);
        let is_complete = |row: &LogRow| match row {
            LogRow::Version(_) => true,
            LogRow::Action(action) => action.row.begun.is_none_or(|begun| begun.n >= oldest),
        };
        let complete = self.rows.iter().take_while(|row| last || is_complete(row));
        let complete = complete.count();
        self.rows.drain(..complete).collect()
    }

    /// Makes rows of the actions that are newer than the version `n`.
    fn advance(&mut self, n: u64) {
        while let Some(action) = self.actions.pop_front_if(|action| action.row.clock.n >= n) {
            self.rows.push_back(LogRow::Action(action));
        }
    }
}

/// Returns one text for each row. With `stat` it has the number of lines that
/// changed, and how the author is known.
pub(crate) fn lines(rows: &[LogRow], stat: bool, view: &View) -> Vec<String> {
    let mut cells: Vec<Vec<Cell>> = rows.iter().map(|row| row.cells(stat, view)).collect();
    if let Some(columns) = view.columns {
        shorten(rows, &mut cells, stat, columns);
    }
    let table = if stat { TABLE.with_remarks() } else { TABLE };
    table.lines(cells, view.columns)
}

/// Shortens the texts of actions between words, as far as that makes their rows
/// fit.
fn shorten(rows: &[LogRow], cells: &mut [Vec<Cell>], stat: bool, columns: usize) {
    let besides = if stat { 7 } else { 6 };
    let widest = |column: usize| {
        let texts = cells.iter().filter_map(|row| row.get(column));
        texts.map(|(_, text)| width(text)).max().unwrap_or_default()
    };
    let taken = (0..besides).filter(|column| *column != 4).map(widest);
    let taken: usize = taken
        .filter(|width| *width > 0)
        .map(|width| width + GAP)
        .sum();
    let room = columns.saturating_sub(taken).max(NARROWEST);
    for (row, cells) in rows.iter().zip(cells) {
        if let (LogRow::Action(_), Some((_, text))) = (row, cells.get_mut(4)) {
            *text = phrase(text, room);
        }
    }
}

/// Returns a version's author, with a question mark if the author is only
/// likely.
fn likely_who(version: &Version) -> String {
    let mark = if version.is_likely() { "?" } else { "" };
    format!("{}{mark}", who(&version.author))
}

impl LogRow {
    fn cells(&self, stat: bool, view: &View) -> Vec<Cell> {
        let (mut row, lines, remarks) = match self {
            Self::Version(LogEntry { version, lines }) => {
                let row = vec![
                    (style::BOLD, name(Some(version.clock))),
                    (style::DIM, view.ago(version.time)),
                    (colour(&version.author), likely_who(version)),
                    (Style::new(), verb(version.kind).to_owned()),
                    (Style::new(), named(version)),
                    (style::DIM, made_by(version)),
                ];
                (row, *lines, remarks(version))
            }
            Self::Action(action) => (action.cells(view), action.lines, String::new()),
        };
        if stat {
            row.push((Style::new(), counts(lines)));
            row.push((style::DIM, remarks));
        }
        row
    }
}

impl ActionRow {
    fn cells(&self, view: &View) -> Vec<Cell> {
        let row = &self.row;
        let (whose, by) = match (&row.session, row.doubt) {
            (Some(session), _) => (style::AGENT, called(session, row.label.as_deref())),
            (None, Some(true)) => (style::UNKNOWN, "unknown".to_owned()),
            (None, _) => (style::USER, "you".to_owned()),
        };
        let id = match (&row.name, row.kind) {
            (Some(name), _) => escaped(name, MAX_NAME),
            (None, ActivityKind::Git) => String::new(),
            (None, _) => name(Some(row.clock)),
        };
        let text = row.text.as_deref().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = escaped(&words.join(" "), MAX_NAME);
        let text = match &row.path {
            Some(file) if text.is_empty() => path(file),
            Some(file) => format!("{} to {text}", path(file)),
            None => text,
        };
        let files = row.files.or(self.files).map(u64::from);
        vec![
            (style::BOLD, id),
            (style::DIM, view.ago(row.time)),
            (whose, cut(&by, WHO)),
            (Style::new(), deed(row.kind).to_owned()),
            (Style::new(), text),
            (
                style::DIM,
                files.map_or_else(String::new, |files| count(files, "file")),
            ),
        ]
    }
}

/// Returns the word for what was done.
fn deed(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Command => "ran",
        ActivityKind::Undo => "undid",
        ActivityKind::Redo => "redid",
        ActivityKind::Restore => "restored",
        ActivityKind::Keep => "kept",
        ActivityKind::Claim => "claimed",
        ActivityKind::Prompt => "prompt",
        ActivityKind::Git => "git",
        ActivityKind::Read => "read",
        ActivityKind::Stale | ActivityKind::NotRead | ActivityKind::Conflict => "refused",
        ActivityKind::Overwrote => "overwrote",
    }
}

/// Returns the path of a version, with what it was or is if a file and a
/// symlink have replaced each other.
fn named(version: &Version) -> String {
    let modes = [version.mode_before, version.mode];
    let is_link = modes.map(|mode| mode.is_some_and(FileMode::is_link));
    let note = match is_link {
        [true, false] => " (was a link)",
        [false, true] => " (a link)",
        _ => "",
    };
    format!("{}{note}", path(&version.path))
}

/// Returns the name of the edit or the command that made a version; empty for
/// none.
fn made_by(version: &Version) -> String {
    let claims = matches!(version.evidence, Evidence::Declared | Evidence::Marked);
    let edit = version.edit.as_ref().filter(|_| claims);
    let name = edit.or(version.command.as_ref());
    name.map_or_else(String::new, |name| escaped(name, MAX_NAME))
}
