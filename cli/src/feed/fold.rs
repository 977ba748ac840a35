//! Events that belong together become one entry: a version, the copies that it
//! made stale, and the commit that confirms it; the versions of one command;
//! many versions by one author at once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use touchmark_client::proto::commands::CommandRow;
use touchmark_client::proto::events::{EditPhase, Event, Happening};
use touchmark_client::proto::files::Verdict;
use touchmark_client::proto::{
    Author, Clock, FileState, LineCounts, Millis, State, Version, VersionKind,
};

use super::entry::{Entry, Note, Verb, Who, agent, marks};
use crate::text;

/// The number of versions whose authors are remembered, so that a correction
/// can name the author that was shown before.
const REMEMBERED: usize = 4096;

/// The number of changes at once that are shown one by one. More become one
/// entry.
const ONE_BY_ONE: usize = 5;

/// Two changes by one author with more time between them, in milliseconds, are
/// not at once.
const AT_ONCE: Millis = 1_000;

/// Gathers events into entries.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    /// The newest entries, which later events may still belong to. Several are
    /// all changes by one author.
    open: Vec<Entry>,
    /// The time of the newest change in `open`.
    newest: Millis,
    authors: HashMap<Clock, Author>,
    order: VecDeque<Clock>,
    /// Commands whose text is known, by their ids.
    commands: HashMap<String, CommandRow>,
    /// Commands of which an entry was returned.
    told: HashSet<String>,
}

impl Fold {
    /// Takes an event that came at `now`. Returns the entries before it that
    /// are complete.
    pub(crate) fn push(&mut self, event: &Event, now: Millis) -> Vec<Entry> {
        if let Happening::Command { command } = &event.happening {
            self.know(command.clone());
            let is_open = |entry: &Entry| entry.command.as_ref() == Some(&command.command);
            if command.versions == 0
                || self.told.remove(&command.command)
                || self.open.iter().any(is_open)
            {
                return Vec::new();
            }
        }
        let mut open = self.open.iter_mut().rev();
        if open.any(|entry| entry.is_version() && entry.absorb(&event.happening))
            || self.confirm(&event.happening)
        {
            return Vec::new();
        }
        let entry = self.entry(event, now);
        let done = match self.follows(&entry) {
            true => Vec::new(),
            false => self.flush(),
        };
        self.newest = entry.time;
        match self.open.first_mut() {
            Some(first) if first.command.is_some() || first.burst.is_some() => first.join(entry),
            _ => self.open.push(entry),
        }
        if self.open.len() > ONE_BY_ONE {
            let mut all = std::mem::take(&mut self.open).into_iter();
            self.open.extend(all.next());
            for entry in all {
                self.open[0].join(entry);
            }
        }
        done
    }

    /// Takes in the commit of the edit that wrote the open versions. It adds
    /// nothing, but that the versions are confirmed. Returns `false` if the
    /// event is another one.
    fn confirm(&mut self, happening: &Happening) -> bool {
        let Happening::Edit {
            session,
            phase: EditPhase::Committed,
            paths,
            ..
        } = happening
        else {
            return false;
        };
        let by = self.open.iter();
        let by = by.filter(|entry| entry.is_version() && entry.is_by(session));
        let is_written = |path| by.clone().any(|entry| entry.names(path));
        if paths.is_empty() || !paths.iter().all(is_written) {
            return false;
        }
        for entry in &mut self.open {
            entry.notes.retain(|note| *note != Note::Provisional);
        }
        true
    }

    /// Returns whether an entry belongs to the open ones.
    fn follows(&self, entry: &Entry) -> bool {
        let Some(first) = self.open.first() else {
            return true;
        };
        let is_at_once = entry.time.saturating_sub(self.newest) <= AT_ONCE;
        first.is_version()
            && entry.is_version()
            && first.who == entry.who
            && first.is_amendment() == entry.is_amendment()
            && first.command == entry.command
            && (is_at_once || first.command.is_some())
    }

    /// Stores the text of a command.
    pub(crate) fn know(&mut self, command: CommandRow) {
        self.commands.insert(command.command.clone(), command);
    }

    /// Returns whether the text of an open entry's command is not known.
    pub(crate) fn lacks_command(&self) -> bool {
        let mut commands = self.open.iter().filter_map(|entry| entry.command.as_ref());
        commands.any(|command| !self.commands.contains_key(command))
    }

    /// Returns how long to wait for events that belong to the open entries;
    /// `None` if no entry is open.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let first = self.open.first()?;
        Some(Duration::from_millis(
            match (&first.command, first.is_version()) {
                // The end of a command names the branches.
                (Some(_), _) => 250,
                (None, true) => 100,
                // What an event causes leaves the daemon together with it.
                (None, false) => 15,
            },
        ))
    }

    /// Returns the open entries: no event belongs to them any more.
    pub(crate) fn flush(&mut self) -> Vec<Entry> {
        let mut done = std::mem::take(&mut self.open);
        for entry in &mut done {
            let Some(id) = entry.command.clone() else {
                continue;
            };
            if let Some(command) = self.commands.get(&id) {
                name(entry, command);
            }
            if self.told.len() > REMEMBERED {
                self.told.clear();
            }
            self.told.insert(id);
        }
        if self.commands.len() > REMEMBERED {
            self.commands.clear();
        }
        done
    }

    fn entry(&mut self, event: &Event, now: Millis) -> Entry {
        let by = |session, label| Who::Author(agent(session, label));
        let entry = |who, verb, path: Option<&_>, notes| Entry {
            path: path.cloned(),
            notes,
            ..Entry::new(now, who, verb)
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
                let more = paths.len().saturating_sub(1);
                let notes = (more > 0).then_some(Note::More(more)).into_iter().collect();
                let verb = Verb::Edit(*phase);
                entry(by(session, label), verb, paths.first(), notes)
            }
            Happening::Session {
                session,
                phase,
                label,
            } => entry(by(session, label), Verb::Session(*phase), None, Vec::new()),
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
            Happening::Command { command } => {
                let what = ran(command).unwrap_or_else(|| "a command".into());
                let changes = text::count(command.versions, "change");
                let mut notes = vec![Note::Text(format!("{what}: {changes}"))];
                notes.extend(command.unwitnessed.clone().map(Note::Unseen));
                let who = by(&command.session, &command.session_label);
                entry(who, Verb::Ran, None, notes)
            }
            Happening::Undone {
                undo,
                redo,
                files,
                label,
                ..
            } => {
                let files = text::count(u64::from(*files), "file");
                let of = label.as_ref().map(|label| format!("{label} in "));
                let what = format!("{}{files} ({undo})", of.unwrap_or_default());
                let verb = match redo {
                    Some(true) => Verb::Redid,
                    _ => Verb::Undid,
                };
                let you = Who::Author(Author::USER);
                entry(you, verb, None, vec![Note::Text(what)])
            }
            Happening::Overflow {} => entry(
                Who::Touchmark,
                Verb::Overflow,
                None,
                vec![Note::Text(
                    "too much at once: all files are compared".into(),
                )],
            ),
        }
    }

    fn version(&mut self, version: &Version, lines: Option<LineCounts>) -> Entry {
        let mut notes: Vec<Note> = version.from.iter().cloned().map(Note::From).collect();
        let mut verb = Verb::Version(version.kind);
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
        notes.extend(marks(version));
        Entry {
            path: Some(version.path.clone()),
            // A renamed file has no earlier lines under its new name.
            lines: lines.filter(|_| verb != Verb::Version(VersionKind::Renamed)),
            notes,
            command: version.command.clone(),
            ..Entry::new(version.time, Who::Author(version.author.clone()), verb)
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

/// Returns a command's text between backticks; `None` if it is not known.
fn ran(command: &CommandRow) -> Option<String> {
    let label = command.label.as_deref()?;
    Some(format!("`{}`", text::escaped(label, 60)))
}

/// Adds what is known of its command to an entry.
fn name(entry: &mut Entry, command: &CommandRow) {
    let unseen = command.unwitnessed.clone().map(Note::Unseen);
    let unseen = unseen.filter(|note| !entry.notes.contains(note));
    entry.notes.extend(unseen);
    match &mut entry.burst {
        Some(burst) => {
            burst.label = ran(command);
            let branches = [&command.branch_before, &command.branch_after];
            if let [Some(before), Some(after)] = branches
                && before != after
            {
                burst.branches = Some((before.clone(), after.clone()));
            }
        }
        None => {
            for note in &mut entry.notes {
                if let Note::Command(label) = note {
                    *label = ran(command);
                }
            }
        }
    }
}

fn stale_alone(file: &FileState) -> Vec<Note> {
    let what = match file.state {
        State::Deleted => "the file was deleted",
        _ => "its copy is out of date",
    };
    vec![Note::Text(what.into())]
}
