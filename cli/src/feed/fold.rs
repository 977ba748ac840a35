//! Events that belong together become one entry: a version, the copies that it
//! made stale, and the commit that confirms it; the versions of one command;
//! many versions by one author at once.

use std::collections::{HashMap, VecDeque};

use touchmark_client::proto::commands::CommandRow;
use touchmark_client::proto::events::{EditPhase, Event, Happening, SessionPhase};
use touchmark_client::proto::files::Verdict;
use touchmark_client::proto::quoting::restore_command;
use touchmark_client::proto::{
    Author, Clock, Evidence, FileState, LineCounts, LineRange, Millis, RelPath, SessionId, State,
    Version, VersionKind,
};

use crate::text;

/// The number of versions whose authors are remembered, so that a correction
/// can name the author that was shown before.
const REMEMBERED: usize = 4096;

/// Who did it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The author of a version, or a session.
    Author(Author),
    /// The daemon itself.
    Touchmark,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Created,
    Edited,
    Deleted,
    Renamed,
    /// An earlier version has another author than was said.
    Corrected,
    /// An earlier version's author is certain now.
    Confirmed,
    Read,
    Reread,
    Editing,
    Committed,
    Aborted,
    Lapsed,
    Opened,
    Closed,
    Forgotten,
    Stale,
    Kept,
    Degraded,
    Overflow,
    /// A command has ended.
    Ran,
}

/// What else is to say about it, in the order it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The name it had before.
    From(RelPath),
    /// Only these lines were read.
    Lines(LineRange),
    /// The content differs from what was read before.
    SinceChanged,
    /// More paths than the one named.
    More(usize),
    /// The correction's earlier author, if still known.
    Was(Option<Author>),
    /// The mark was not bound to a content.
    Marked,
    /// Written in a command window.
    Command,
    /// An editor reported it.
    Editor,
    /// The kernel named the process.
    Process,
    /// Found after touchmark could not watch.
    Gap,
    /// Declared after the write.
    Late,
    /// The edit it belongs to is still open.
    Provisional,
    /// Replaced before anybody saw it; with the command that brings it back.
    Overwritten(Option<String>),
    /// Declared by its writer, never read from disk.
    Unobserved,
    /// By a formatter, after an edit.
    Formatted,
    /// These sessions' copies are out of date now.
    StaleFor(Vec<Author>),
    /// These sessions read a file that is gone now.
    GoneFor(Vec<Author>),
    /// Free text of the daemon's.
    Text(String),
}

/// One line to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) time: Millis,
    pub(crate) who: Who,
    pub(crate) verb: Verb,
    pub(crate) path: Option<RelPath>,
    pub(crate) lines: Option<LineCounts>,
    pub(crate) notes: Vec<Note>,
    /// The command in whose window it was written.
    command: Option<String>,
}

/// Gathers events into entries.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    open: Option<Entry>,
    authors: HashMap<Clock, Author>,
    order: VecDeque<Clock>,
}

impl Fold {
    /// Takes an event that came at `now`. Hands out the entry before it, if
    /// that is complete now.
    pub(crate) fn push(&mut self, event: &Event, now: Millis) -> Option<Entry> {
        if let Some(open) = &mut self.open
            && open.absorb(&event.happening)
        {
            return None;
        }
        if let Happening::Command { command } = &event.happening
            && command.versions == 0
        {
            return None;
        }
        let entry = self.entry(event, now);
        self.open.replace(entry)
    }

    /// The last entry, when nothing more is waiting to be folded into it.
    pub(crate) fn flush(&mut self) -> Option<Entry> {
        self.open.take()
    }

    fn entry(&mut self, event: &Event, now: Millis) -> Entry {
        let by = |session, label| Who::Author(agent(session, label));
        let entry = |who, verb, path: Option<&RelPath>, notes| Entry {
            time: now,
            who,
            verb,
            path: path.cloned(),
            lines: None,
            notes,
            command: None,
        };
        match &event.happening {
            Happening::Version { version, lines } => self.version(version, *lines),
            Happening::Stale {
                session,
                file,
                label,
            } => entry(
                by(session, label),
                Verb::Stale,
                Some(&file.path),
                stale_alone(file),
            ),
            Happening::Read {
                session,
                path,
                verdict,
                range,
                label,
            } => {
                let verb = match verdict {
                    Verdict::First | Verdict::Extends => Verb::Read,
                    Verdict::Repeat | Verdict::Changed => Verb::Reread,
                };
                let mut notes: Vec<Note> = range.iter().copied().map(Note::Lines).collect();
                if *verdict == Verdict::Changed {
                    notes.push(Note::SinceChanged);
                }
                entry(by(session, label), verb, Some(path), notes)
            }
            Happening::Edit {
                session,
                phase,
                paths,
                label,
                ..
            } => {
                let verb = match phase {
                    EditPhase::Begun => Verb::Editing,
                    EditPhase::Committed => Verb::Committed,
                    EditPhase::Aborted => Verb::Aborted,
                    EditPhase::Lapsed => Verb::Lapsed,
                };
                let more = paths.len().saturating_sub(1);
                let notes = if more > 0 {
                    vec![Note::More(more)]
                } else {
                    Vec::new()
                };
                entry(by(session, label), verb, paths.first(), notes)
            }
            Happening::Session {
                session,
                phase,
                label,
            } => {
                let verb = match phase {
                    SessionPhase::Opened => Verb::Opened,
                    SessionPhase::Closed => Verb::Closed,
                    SessionPhase::Forgotten => Verb::Forgotten,
                };
                entry(by(session, label), verb, None, Vec::new())
            }
            Happening::Recovered { path, kept } => entry(
                Who::Touchmark,
                Verb::Kept,
                Some(path),
                vec![Note::Text(format!("in {kept}"))],
            ),
            Happening::Degraded { path, cause } => entry(
                Who::Touchmark,
                Verb::Degraded,
                path.as_ref(),
                vec![Note::Text(cause.clone())],
            ),
            Happening::Command { command } => entry(
                by(&command.session, &command.session_label),
                Verb::Ran,
                None,
                vec![
                    ran(command),
                    Note::Text(text::count(command.versions, "change")),
                ],
            ),
            Happening::Overflow {} => entry(
                Who::Touchmark,
                Verb::Overflow,
                None,
                vec![Note::Text(
                    "too much at once: every tracked file is compared with the disk".into(),
                )],
            ),
        }
    }

    fn version(&mut self, version: &Version, lines: Option<LineCounts>) -> Entry {
        let mut notes: Vec<Note> = version.from.iter().cloned().map(Note::From).collect();
        let mut verb = match version.kind {
            VersionKind::Created => Verb::Created,
            VersionKind::Modified => Verb::Edited,
            VersionKind::Deleted => Verb::Deleted,
            VersionKind::Renamed => Verb::Renamed,
        };
        if let Some(amended) = version.amends {
            let was = self.authors.get(&amended).cloned();
            if was.as_ref() == Some(&version.author) {
                verb = Verb::Confirmed;
            } else {
                verb = Verb::Corrected;
                notes.push(Note::Was(was));
            }
            self.remember(amended, &version.author);
        }
        self.remember(version.clock, &version.author);
        notes.extend(match version.evidence {
            Evidence::Marked => Some(Note::Marked),
            Evidence::Command if version.formatted != Some(true) => Some(Note::Command),
            Evidence::Editor => Some(Note::Editor),
            Evidence::Process => Some(Note::Process),
            Evidence::Gap => Some(Note::Gap),
            Evidence::Declared | Evidence::Unmarked | Evidence::Command => None,
        });
        let marks = [
            (version.late, Note::Late),
            (version.provisional, Note::Provisional),
            (
                version.overwritten,
                Note::Overwritten(restore_command(&version.path, version.clock)),
            ),
            (version.unobserved, Note::Unobserved),
            (version.formatted, Note::Formatted),
        ];
        notes.extend(
            marks
                .into_iter()
                .filter(|(said, _)| *said == Some(true))
                .map(|(_, note)| note),
        );
        Entry {
            time: version.time,
            who: Who::Author(version.author.clone()),
            verb,
            path: Some(version.path.clone()),
            // A renamed file has no earlier lines under its new name.
            lines: lines.filter(|_| verb != Verb::Renamed),
            notes,
            command: version.command.clone(),
        }
    }

    fn remember(&mut self, clock: Clock, author: &Author) {
        if self.authors.insert(clock, author.clone()).is_none() {
            self.order.push_back(clock);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.authors.remove(&oldest);
        }
    }
}

/// A command, with the branches that it went from and to.
fn ran(command: &CommandRow) -> Note {
    let label = command.label.as_deref().unwrap_or("a command");
    let [before, after] = [&command.branch_before, &command.branch_after];
    Note::Text(match (before, after) {
        (Some(before), Some(after)) if before != after => {
            format!("by {label} ({before} to {after})")
        }
        _ => format!("by {label}"),
    })
}

impl Entry {
    /// Takes in an event that this entry caused; `false` if it did not.
    fn absorb(&mut self, happening: &Happening) -> bool {
        if !self.is_version() {
            return false;
        }
        let is_same = |command| self.command.is_some() && self.command.as_ref() == command;
        match happening {
            // What one command did to many files is one line.
            Happening::Version { version, .. } if is_same(version.command.as_ref()) => {
                if !self.names(&version.path) {
                    self.one_more();
                }
                true
            }
            Happening::Command { command } if is_same(Some(&command.command)) => {
                self.notes.retain(|note| *note != Note::Command);
                self.notes.push(ran(command));
                true
            }
            Happening::Stale {
                session,
                file,
                label,
            } if self.names(&file.path) => {
                self.stale(agent(session, label), file.state == State::Deleted);
                true
            }
            // The commit of the edit that wrote this version says nothing
            // more: it is confirmed.
            Happening::Edit {
                session,
                phase: EditPhase::Committed,
                paths,
                ..
            } if self.is_by(session) && paths.iter().all(|path| self.names(path)) => {
                self.notes.retain(|note| *note != Note::Provisional);
                true
            }
            _ => false,
        }
    }

    /// The same command has changed another file.
    fn one_more(&mut self) {
        let mut notes = self.notes.iter_mut();
        match notes.find_map(|note| match note {
            Note::More(more) => Some(more),
            _ => None,
        }) {
            Some(more) => *more += 1,
            None => self.notes.push(Note::More(1)),
        }
    }

    fn is_version(&self) -> bool {
        matches!(
            self.verb,
            Verb::Created
                | Verb::Edited
                | Verb::Deleted
                | Verb::Renamed
                | Verb::Corrected
                | Verb::Confirmed
        )
    }

    fn is_by(&self, session: &SessionId) -> bool {
        matches!(&self.who, Who::Author(author) if author.is(session))
    }

    /// Whether the entry is about that path, by its new or its old name.
    fn names(&self, path: &RelPath) -> bool {
        self.path.as_ref() == Some(path)
            || self
                .notes
                .iter()
                .any(|note| matches!(note, Note::From(from) if from == path))
    }

    fn stale(&mut self, session: Author, gone: bool) {
        for note in &mut self.notes {
            match note {
                Note::StaleFor(sessions) if !gone => return push_once(sessions, session),
                Note::GoneFor(sessions) if gone => return push_once(sessions, session),
                _ => {}
            }
        }
        self.notes.push(if gone {
            Note::GoneFor(vec![session])
        } else {
            Note::StaleFor(vec![session])
        });
    }
}

fn push_once(sessions: &mut Vec<Author>, session: Author) {
    if !sessions.contains(&session) {
        sessions.push(session);
    }
}

/// A session as the one that does something.
fn agent(session: &SessionId, label: &Option<String>) -> Author {
    Author {
        label: label.clone(),
        ..Author::agent(session.clone())
    }
}

fn stale_alone(file: &FileState) -> Vec<Note> {
    let what = match file.state {
        State::Deleted => "the file is gone",
        _ => "its copy is out of date",
    };
    vec![Note::Text(what.into())]
}
