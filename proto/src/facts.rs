//! What the daemon tells about files: versions, changes, states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clock, FileMode, Hash, LineRange, Millis, RelPath, SessionId};

/// Who wrote. Two authors are equal where sort and session are: the label is
/// for the eyes.
#[derive(Clone, Debug, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// What sort of writer.
    pub kind: AuthorKind,
    /// The session, where the writer is an agent.
    pub session: Option<SessionId>,
    /// The session's label; `None` where it has none, or was forgotten
    /// (SES-2).
    pub label: Option<String>,
}

impl PartialEq for Author {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.session) == (other.kind, &other.session)
    }
}

/// The sorts of writers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum AuthorKind {
    /// A declared agent session.
    Agent,
    /// Somebody who is not a declared agent.
    User,
    /// The daemon could not watch, so it does not say.
    Unknown,
}

impl Author {
    /// Somebody who is not a declared agent.
    pub const USER: Self = Self {
        kind: AuthorKind::User,
        session: None,
        label: None,
    };
    /// The daemon could not watch.
    pub const UNKNOWN: Self = Self {
        kind: AuthorKind::Unknown,
        session: None,
        label: None,
    };

    /// A declared agent session.
    pub fn agent(session: SessionId) -> Self {
        Self {
            kind: AuthorKind::Agent,
            session: Some(session),
            label: None,
        }
    }

    /// Whether this is that session.
    pub fn is(&self, session: &SessionId) -> bool {
        self.session.as_ref() == Some(session)
    }
}

/// What an attribution rests on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// The content is the one its writer declared (ATTR-1).
    Declared,
    /// A mark without a declared content was open (ATTR-4).
    Marked,
    /// A command window was open (ATTR-6).
    Command,
    /// An editor reported the save (ATTR-2).
    Editor,
    /// The kernel named the process (ATTR-3).
    Process,
    /// Nothing claimed it (ATTR-7).
    Unmarked,
    /// The daemon could not watch (ATTR-13).
    Gap,
}

/// What happened to a path.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum VersionKind {
    /// It was not there before.
    Created,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It came here from another name.
    Renamed,
}

/// One content state of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Its place in the order of all facts.
    pub clock: Clock,
    /// The path.
    pub path: RelPath,
    /// What happened.
    pub kind: VersionKind,
    /// The name it had before, where it was renamed.
    pub from: Option<RelPath>,
    /// The content; null where the file is gone.
    pub hash: Option<Hash>,
    /// In bytes.
    pub size: u64,
    /// When the daemon saw it.
    pub time: Millis,
    /// Who wrote it.
    pub author: Author,
    /// What that rests on.
    pub evidence: Evidence,
    /// The earlier version that this one corrects (ATTR-11).
    pub amends: Option<Clock>,
    /// Another party replaced it before any session had seen it.
    pub overwritten: Option<bool>,
    /// Declared by its writer, never read from disk (ATTR-10).
    pub unobserved: Option<bool>,
    /// The mark it rests on is still open (ATTR-4).
    pub provisional: Option<bool>,
    /// It was declared after it was written (ATTR-14).
    pub late: Option<bool>,
    /// A formatter wrote it after an edit (ATTR-17).
    pub formatted: Option<bool>,
    /// Every session whose command window covered it (ATTR-6).
    pub candidates: Option<Vec<SessionId>>,
    /// The edit that wrote it; `None` where no edit did, or it is only one that
    /// may have (ATTR-4).
    pub edit: Option<String>,
    /// The command in whose window it was written (ATTR-6).
    pub command: Option<String>,
    /// Kind and permissions, where a read or a look at the workspace told them
    /// (SCOPE-7). The content of a symlink is the name that it leads to.
    pub mode: Option<FileMode>,
    /// What it had before, where it is known to have been another.
    pub mode_before: Option<FileMode>,
}

/// Lines added and removed between two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineCounts {
    /// Lines only the newer text has.
    pub added: u32,
    /// Lines only the older text has.
    pub removed: u32,
}

/// What happened to one path, folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The path.
    pub path: RelPath,
    /// What became of it, all in all.
    pub kind: VersionKind,
    /// The name it had before, where it was renamed.
    pub from: Option<RelPath>,
    /// The content now; null where the file is gone.
    pub hash: Option<Hash>,
    /// Everybody who wrote, in the order of their first write.
    pub changed_by: Vec<Author>,
    /// What each attribution rests on, in the same order of first use.
    pub evidence: Vec<Evidence>,
    /// When the first of these versions was seen.
    pub first_time: Millis,
    /// When the last of them was seen.
    pub last_time: Millis,
    /// How many versions.
    pub versions: u32,
    /// Lines, where both texts are at hand.
    pub lines: Option<LineCounts>,
    /// Somebody's version that was overwritten unseen (ATTR-10).
    pub lost: Option<Box<Version>>,
    /// The writer has not closed the file yet (MOD-2).
    pub writing: Option<bool>,
    /// Edits of the session's own that this change took back, the oldest
    /// first (SEEN-7).
    pub reverts: Option<Vec<String>>,
    /// The lines that those edits had written, counted in the content that
    /// the session wrote last; without `reverts`, those lines of the session's
    /// last edits in whose place is again what was there before. `None` where
    /// there are none, or the texts are not kept.
    pub reverted_lines: Option<Vec<LineRange>>,
}

/// What a session's copy of a file is worth (SEEN-2).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The session never saw it.
    Unread,
    /// The session has seen what is on disk.
    Fresh,
    /// What is on disk differs from what the session saw.
    Stale,
    /// The session saw it and it is gone.
    Deleted,
    /// It cannot be read (LOSS-4).
    Unreadable,
    /// The session read something of it, and nobody knows what (SEEN-9).
    Unknown,
}

/// A file as one session knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileState {
    /// The path.
    pub path: RelPath,
    /// What the session's copy is worth.
    pub state: State,
    /// Whether the session may edit it (SEEN-3).
    pub may_edit: bool,
    /// Whether the current bytes are still in the session's context.
    pub resident: bool,
    /// Lines in the context that come from older contents.
    pub stale_ranges: Option<Vec<LineRange>>,
    /// The content on disk; null where the file is gone or unstable.
    pub hash: Option<Hash>,
    /// The content the session saw last.
    pub seen_hash: Option<Hash>,
    /// The seen hash is what the daemon found, not what the client named.
    pub assumed: Option<bool>,
    /// How often the session read it.
    pub read_count: u32,
    /// When it read it last.
    pub read_at: Option<Millis>,
    /// Lines on disk.
    pub line_count: u32,
    /// Bytes on disk.
    pub size: u64,
    /// The file's own modification time.
    pub mtime_ms: Millis,
    /// An editor holds unsaved changes.
    pub unsaved: Option<bool>,
    /// The lines of the saved file that they change, from the first to the
    /// last; `None` where an editor has not said.
    pub unsaved_lines: Option<LineRange>,
    /// Who changed it since the session saw it.
    pub changed_by: Option<Vec<Author>>,
    /// When the first of those changes was seen.
    pub since: Option<Millis>,
}
