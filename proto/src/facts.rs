//! What the daemon reports about files: versions, changes, states.

use serde::{Deserialize, Serialize};

use crate::{Clock, FileMode, Hash, LineRange, Millis, RelPath, SessionId};

/// The author of a version. Two authors are equal if kind and session are; the
/// label is only for display.
#[derive(Clone, Debug, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Author {
    /// The kind of the author.
    pub kind: AuthorKind,
    /// The session, if the author is an agent; else `None`.
    pub session: Option<SessionId>,
    /// The session's label; `None` if it has none or was forgotten (SES-2).
    pub label: Option<String>,
}

impl PartialEq for Author {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.session) == (other.kind, &other.session)
    }
}

/// The kinds of authors.
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum AuthorKind {
    /// A declared agent session.
    Agent,
    /// A writer that is no declared agent: a person, a formatter, git.
    User,
    /// The daemon was not able to watch, so the author is not known.
    Unknown,
    /// The person who made a commit of the repository. Only blame has it, for
    /// lines whose author is not in the history (HIST-11).
    Committed,
}

impl Author {
    /// A writer that is no declared agent.
    pub const USER: Self = Self::of(AuthorKind::User);
    /// The author of a change that the daemon was not able to watch.
    pub const UNKNOWN: Self = Self::of(AuthorKind::Unknown);
    /// The author of a commit of the repository.
    pub const COMMITTED: Self = Self::of(AuthorKind::Committed);

    const fn of(kind: AuthorKind) -> Self {
        Self {
            kind,
            session: None,
            label: None,
        }
    }

    /// Returns this agent session as an author.
    pub fn agent(session: SessionId) -> Self {
        Self {
            session: Some(session),
            ..Self::of(AuthorKind::Agent)
        }
    }

    /// Returns whether the author is this session.
    pub fn is(&self, session: &SessionId) -> bool {
        self.session.as_ref() == Some(session)
    }
}

/// The evidence that an attribution rests on.
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// The content is the one that its writer declared (ATTR-1).
    Declared,
    /// A mark without a declared content covered the change (ATTR-4).
    Marked,
    /// A command window covered the change (ATTR-6).
    Command,
    /// An editor reported the save (ATTR-2).
    Editor,
    /// The kernel named the process that wrote: one of a command (ATTR-3).
    Process,
    /// No rule names another author, so it is the user's (ATTR-7).
    Unmarked,
    /// The daemon was not able to watch (ATTR-13).
    Gap,
    /// The user said who wrote it (ATTR-18).
    Claimed,
    /// A commit of the repository has the line, or a note of that commit names
    /// the agent (HIST-11).
    Commit,
}

/// What happened to a path.
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum VersionKind {
    /// The file did not exist before.
    Created,
    /// The content changed.
    Modified,
    /// The file was removed.
    Deleted,
    /// The file was renamed, or moved, to this path.
    Renamed,
}

/// One content state of one path, with its author.
#[apply(answer!)]
pub struct Version {
    /// The version's clock: its place in the order of all facts.
    pub clock: Clock,
    /// The file's path.
    pub path: RelPath,
    /// What happened to the path.
    pub kind: VersionKind,
    /// The path before a rename; else `None`.
    pub from: Option<RelPath>,
    /// The hash of the content; null if the file was removed.
    pub hash: Option<Hash>,
    /// The size of the content in bytes.
    pub size: u64,
    /// When the daemon saw the version.
    pub time: Millis,
    /// The author.
    pub author: Author,
    /// The evidence for the author.
    pub evidence: Evidence,
    /// The clock of the earlier version that this one corrects (ATTR-11).
    pub amends: Option<Clock>,
    /// Whether another writer replaced the content before any session had seen
    /// it.
    pub overwritten: Option<bool>,
    /// Whether the content was declared by its writer and never read from disk
    /// (ATTR-10).
    pub unobserved: Option<bool>,
    /// Whether the mark that covers the version is still open, so its author
    /// may change (ATTR-4).
    pub provisional: Option<bool>,
    /// Whether the version was declared after it was written (ATTR-14).
    pub late: Option<bool>,
    /// Whether a formatter wrote the version after an edit (ATTR-17).
    pub formatted: Option<bool>,
    /// The sessions that may have written the version: those whose command
    /// windows covered it (ATTR-6), or whose mark is open (ATTR-4).
    pub candidates: Option<Vec<SessionId>>,
    /// The id of the edit that wrote the version. `None` if no edit did, or if
    /// it is not certain (ATTR-4).
    pub edit: Option<String>,
    /// The id of the command in whose window the version was written (ATTR-6);
    /// `None` if there is none.
    pub command: Option<String>,
    /// Kind and permissions, where a read or a look at the workspace told them
    /// (SCOPE-7). The content of a symlink is the name that it leads to.
    pub mode: Option<FileMode>,
    /// What it had before, where it is known to have been another.
    pub mode_before: Option<FileMode>,
    /// True if the content before the version is not known (SCOPE-3). The
    /// version may then include changes of others than its author.
    pub before_unknown: Option<bool>,
    /// The file's name behind the symlinks on the path, as they were when the
    /// version was recorded (FILE-1). `None` if there were none, or if it is not
    /// known.
    pub real: Option<RelPath>,
}

impl Version {
    /// Returns whether the author is only likely: the only evidence is the time
    /// of a command (ATTR-6). The version may be the user's.
    pub fn is_likely(&self) -> bool {
        let formatted = self.formatted == Some(true);
        self.evidence.is_likely(self.command.is_some(), formatted)
    }
}

impl Evidence {
    /// Returns whether an author with this evidence is only likely.
    /// `in_command`: whether the version names a command. Only a formatter's
    /// change that an editor has reported is certain without one (ATTR-17).
    pub fn is_likely(self, in_command: bool, formatted: bool) -> bool {
        self == Self::Command && (in_command || !formatted)
    }

    /// Returns whether a command wrote, and not a tool or a person.
    pub fn is_of_command(self) -> bool {
        matches!(self, Self::Command | Self::Process)
    }
}

/// Numbers of lines that differ between two texts.
#[apply(answer!)]
#[derive(Copy)]
pub struct LineCounts {
    /// The number of lines that are only in the newer text.
    pub added: u32,
    /// The number of lines that are only in the older text.
    pub removed: u32,
}

/// Several versions of one path, folded into one change.
#[apply(answer!)]
pub struct Change {
    /// The file's path.
    pub path: RelPath,
    /// The overall change from the first version to the last.
    pub kind: VersionKind,
    /// The path before a rename; else `None`.
    pub from: Option<RelPath>,
    /// The hash of the current content; null if the file was removed.
    pub hash: Option<Hash>,
    /// The authors, in the order of their first version.
    pub changed_by: Vec<Author>,
    /// The kinds of evidence for the authors, in the order of their first use.
    pub evidence: Vec<Evidence>,
    /// When the daemon saw the first of the change's versions.
    pub first_time: Millis,
    /// When the daemon saw the last of the change's versions.
    pub last_time: Millis,
    /// The number of versions.
    pub versions: u32,
    /// Lines added and removed; `None` if a text is not available.
    pub lines: Option<LineCounts>,
    /// A version that an agent overwrote without having seen it (ATTR-10).
    pub lost: Option<Box<Version>>,
    /// Whether the writer has not closed the file yet (MOD-2).
    pub writing: Option<bool>,
    /// The session's own edits that this change reverted, oldest first
    /// (SEEN-7).
    pub reverts: Option<Vec<String>>,
    /// The lines that the edits in `reverts` had written, numbered in the
    /// content that the session wrote last. Without `reverts`: the lines of the
    /// session's last edits that have their previous text again. `None` if
    /// there are none, or if the texts are not kept.
    pub reverted_lines: Option<Vec<LineRange>>,
}

/// The state of a session's copy of a file (SEEN-2).
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum State {
    /// The session never saw the file.
    Unread,
    /// The session has seen the content on disk.
    Fresh,
    /// The content on disk differs from what the session saw.
    Stale,
    /// The session saw the file, and it was removed.
    Deleted,
    /// The file cannot be read (LOSS-4).
    Unreadable,
    /// The session read the file, but which content it saw is not known
    /// (SEEN-9).
    Unknown,
}

/// The state of a file for one session.
#[apply(answer!)]
pub struct FileState {
    /// The file's path.
    pub path: RelPath,
    /// The state of the session's copy.
    pub state: State,
    /// Whether the session may edit it (SEEN-3).
    pub may_edit: bool,
    /// Whether the current content is still in the session's context.
    pub resident: bool,
    /// Lines in the session's context that come from older contents.
    pub stale_ranges: Option<Vec<LineRange>>,
    /// The hash of the content on disk; null if the file was removed or keeps
    /// changing.
    pub hash: Option<Hash>,
    /// The hash of the content that the session saw last.
    pub seen_hash: Option<Hash>,
    /// Whether `seen_hash` is what the daemon found on disk, not what the
    /// client named.
    pub assumed: Option<bool>,
    /// The number of times the session has read the file.
    pub read_count: u32,
    /// When the session last read the file; `None` if it has not.
    pub read_at: Option<Millis>,
    /// The number of lines on disk.
    pub line_count: u32,
    /// The size on disk, in bytes.
    pub size: u64,
    /// The file's modification time, in milliseconds since 1970.
    pub mtime_ms: Millis,
    /// Whether an editor has unsaved changes of the file.
    pub unsaved: Option<bool>,
    /// The lines of the saved file that the unsaved changes affect, from the
    /// first to the last. `None` if no editor has named them.
    pub unsaved_lines: Option<LineRange>,
    /// The authors of the changes since the session saw the file; `None` if
    /// there are none.
    pub changed_by: Option<Vec<Author>>,
    /// When the daemon saw the first change since the session saw the file.
    pub since: Option<Millis>,
}
