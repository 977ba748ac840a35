//! One entry of the feed: a version, the copies that it made stale, and the
//! commit that confirms it; or many changes at once.

use std::collections::BTreeSet;

use touchmark_client::proto::events::{EditPhase, Happening, SessionPhase};
use touchmark_client::proto::quoting::restore_command;
use touchmark_client::proto::{
    Author, Evidence, LineCounts, LineRange, Millis, RelPath, SessionId, State, Version,
    VersionKind,
};

/// The originator of an entry.
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
    /// A file was created, edited, deleted or renamed.
    Version(VersionKind),
    /// Several files were changed in different ways.
    Changed,
    /// An earlier version has another author than was shown.
    Corrected,
    /// The author of an earlier version is certain now.
    Confirmed,
    Read,
    Reread,
    /// An edit began or ended.
    Edit(EditPhase),
    /// A session began or ended.
    Session(SessionPhase),
    Stale,
    Kept,
    Degraded,
    Overflow,
    /// A command has changed files.
    Ran,
    /// The user undid changes.
    Undid,
    /// The user put back what an undo had removed.
    Redid,
    /// Another daemon has taken over.
    Restarted,
    /// The daemon has ended.
    Ended,
}

/// A remark about an entry. Remarks are shown in the order of this list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// The previous name of the file.
    From(RelPath),
    /// Only these lines were read.
    Lines(LineRange),
    /// The content differs from what the session read before.
    SinceChanged,
    /// The number of paths in addition to the one that is shown.
    More(usize),
    /// The author that was shown for the corrected version; `None` if it is no
    /// longer known.
    Was(Option<Author>),
    /// How the author is known.
    Evidence(Evidence),
    /// The version was written in the window of this command; `None` if its
    /// text is not known.
    Command(Option<String>),
    /// The edit that wrote the version is still open.
    Provisional,
    /// The version was replaced before any session saw it. The text is the
    /// command that restores it.
    Overwritten(Option<String>),
    /// Something else that is special about the version.
    Mark(&'static str),
    /// These sessions' copies are out of date now.
    StaleFor(Vec<Author>),
    /// These sessions have read a file that is deleted now.
    GoneFor(Vec<Author>),
    /// Why a witness has not seen all writes of the command.
    Unseen(String),
    /// Any other text.
    Text(String),
}

/// Many changes that are shown as one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The files that were changed.
    pub(crate) files: BTreeSet<RelPath>,
    /// The command that changed them, if its text is known.
    pub(crate) label: Option<String>,
    /// The branches before and after the command, if they differ.
    pub(crate) branches: Option<(String, String)>,
}

/// An entry of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) time: Millis,
    pub(crate) who: Who,
    pub(crate) verb: Verb,
    pub(crate) path: Option<RelPath>,
    pub(crate) lines: Option<LineCounts>,
    pub(crate) notes: Vec<Note>,
    /// The id of the command in whose window the change was made.
    pub(crate) command: Option<String>,
    /// The changes, if there are many.
    pub(crate) burst: Option<Burst>,
}

impl Entry {
    /// Returns an entry without a path and remarks.
    pub(crate) fn new(time: Millis, who: Who, verb: Verb) -> Self {
        Self {
            time,
            who,
            verb,
            path: None,
            lines: None,
            notes: Vec::new(),
            command: None,
            burst: None,
        }
    }

    /// Returns whether the entry is about versions of files.
    pub(crate) fn is_version(&self) -> bool {
        self.burst.is_some() || matches!(self.verb, Verb::Version(_)) || self.is_amendment()
    }

    /// Returns whether the entry is about the authors of earlier versions.
    pub(crate) fn is_amendment(&self) -> bool {
        matches!(self.verb, Verb::Corrected | Verb::Confirmed)
    }

    /// Returns whether a session is the author.
    pub(crate) fn is_by(&self, session: &SessionId) -> bool {
        matches!(&self.who, Who::Author(author) if author.is(session))
    }

    /// Returns whether the entry is about a path, by its new or its old name.
    pub(crate) fn names(&self, path: &RelPath) -> bool {
        let is_old = |note: &Note| matches!(note, Note::From(from) if from == path);
        self.path.as_ref() == Some(path)
            || self.notes.iter().any(is_old)
            || (self.burst.as_ref()).is_some_and(|burst| burst.files.contains(path))
    }

    /// Takes in an event that this entry caused. Returns `false` if it did not
    /// cause the event.
    pub(crate) fn absorb(&mut self, happening: &Happening) -> bool {
        match happening {
            Happening::Stale {
                session,
                file,
                label,
            } if self.names(&file.path) => {
                self.stale(agent(session, label), file.state == State::Deleted);
                true
            }
            _ => false,
        }
    }

    /// Adds another change to this one.
    pub(crate) fn join(&mut self, other: Self) {
        if self.burst.is_none() && self.path == other.path {
            // One file that was written twice stays one file.
            self.lines = None;
            return;
        }
        let verb = match self.command {
            Some(_) => Verb::Ran,
            None if self.verb == other.verb => self.verb,
            None => Verb::Changed,
        };
        let path = self.path.take();
        let burst = self.burst.get_or_insert_default();
        burst.files.extend(path.into_iter().chain(other.path));
        for note in std::mem::take(&mut self.notes)
            .into_iter()
            .chain(other.notes)
        {
            match note {
                Note::StaleFor(all) => all.into_iter().for_each(|one| self.stale(one, false)),
                Note::GoneFor(all) => all.into_iter().for_each(|one| self.stale(one, true)),
                Note::Unseen(_) => self.notes.push(note),
                // The others are about one file.
                _ => {}
            }
        }
        self.verb = verb;
        self.lines = match (self.lines, other.lines) {
            (Some(own), Some(more)) => Some(LineCounts {
                added: own.added.saturating_add(more.added),
                removed: own.removed.saturating_add(more.removed),
            }),
            _ => None,
        };
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

/// Returns a session as an author.
pub(crate) fn agent(session: &SessionId, label: &Option<String>) -> Author {
    Author {
        label: label.clone(),
        ..Author::agent(session.clone())
    }
}

/// Returns the remarks about how a version was made and found.
pub(crate) fn marks(version: &Version) -> impl Iterator<Item = Note> + use<> {
    let evidence = match version.evidence {
        Evidence::Marked | Evidence::Editor | Evidence::Process | Evidence::Gap => {
            Some(Note::Evidence(version.evidence))
        }
        Evidence::Command if version.formatted != Some(true) => Some(Note::Command(None)),
        Evidence::Declared
        | Evidence::Unmarked
        | Evidence::Command
        | Evidence::Claimed
        | Evidence::Commit => None,
    };
    let back = restore_command(&version.path, version.clock);
    let marks = [
        (version.late, Note::Mark("declared afterwards")),
        (version.provisional, Note::Provisional),
        (version.overwritten, Note::Overwritten(back)),
        (version.unobserved, Note::Mark("never seen on disk")),
        (
            version.formatted,
            Note::Mark("by a formatter after the edit"),
        ),
    ];
    let marks = marks.into_iter().filter(|(said, _)| *said == Some(true));
    evidence.into_iter().chain(marks.map(|(_, note)| note))
}
