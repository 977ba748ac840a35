//! Requests about sessions.

use crate::daemon::Program;
use crate::{Change, ClientPath, Clock, LineRange, Millis, RelPath, SessionId};

/// Opens a session, or reopens it.
#[apply(request!)]
pub struct SessionOpen {
    /// The session's id; a label is not accepted here.
    pub session: SessionId,
    /// The agent's program; `None` if not known.
    pub agent: Option<Program>,
    /// The session that started this one, for a sub-agent (SEEN-5).
    pub parent: Option<SessionId>,
    /// The id of the agent's process.
    pub pid: Option<u32>,
}

/// A warning that is stored for a session.
#[apply(answer!)]
pub struct Warning {
    /// The files that the warning is about.
    pub files: Vec<crate::RelPath>,
    /// The text of the warning.
    pub note: Option<String>,
    /// When the warning was stored.
    pub created_at: Millis,
}

/// The state of a session when it was opened.
#[apply(answer!)]
pub struct SessionOpened {
    /// The session's id.
    pub session: SessionId,
    /// Whether the session was known before.
    pub resumed: bool,
    /// The current clock: the number of the newest fact.
    pub clock: Clock,
    /// A pending warning. It is not taken by this (CHK-2).
    pub warning: Option<Warning>,
    /// The changes by others since the session was last active. They are not
    /// taken by this.
    pub modified: Vec<Change>,
    /// The session's label: its short name for display (SES-2).
    pub label: Option<String>,
    /// Files that could not be read in time; `None` if there are none. The
    /// answer describes their previous state (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Closes a session. Its open edits and commands are aborted.
#[apply(request!)]
pub struct SessionClose {
    /// The session's id or label.
    pub session: SessionId,
    /// Whether to remove also what the session knew and stored; default false.
    /// The log of versions stays.
    #[serde(default)]
    pub forget: bool,
}

/// Lists all sessions.
#[apply(request!)]
pub struct SessionList {
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// A row of the list of sessions.
#[apply(answer!)]
pub struct SessionRow {
    /// The session's id.
    pub session: SessionId,
    /// The agent's program; `None` if not known.
    pub agent: Option<Program>,
    /// For a sub-agent: the session that started it.
    pub parent: Option<SessionId>,
    /// When the session was first opened.
    pub opened_at: Millis,
    /// When the session sent its last request.
    pub last_active: Millis,
    /// Whether the session is open.
    pub open: bool,
    /// The number of reads recorded.
    pub reads: u64,
    /// The number of edits begun.
    pub edits: u64,
    /// The number of files whose copy is stale now.
    pub stale: u64,
    /// The number of changes not yet delivered to the session.
    pub modified: u64,
    /// The session's label: its short name for display (SES-2).
    pub label: Option<String>,
    /// The model that the session uses; `None` if it was never recorded.
    pub model: Option<String>,
}

/// A list of sessions.
#[apply(answer!)]
pub struct SessionRows {
    /// The sessions, sorted by id.
    pub sessions: Vec<SessionRow>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}

/// Reports that the session's context was compacted: what it read is no longer
/// resident, except for the files in `keep`.
#[apply(request!)]
pub struct SessionCompacted {
    /// The session's id or label.
    pub session: SessionId,
    /// The files whose text is still in the context.
    #[serde(default)]
    pub keep: Vec<ClientPath>,
}

/// Reports that parts of the session's context were cut.
#[apply(request!)]
pub struct SessionTruncated {
    /// The session's id or label.
    pub session: SessionId,
    /// The parts that were cut.
    pub items: Vec<Truncated>,
}

/// A file whose text was cut from the context.
#[apply(request!)]
pub struct Truncated {
    /// The file whose text was cut.
    pub path: ClientPath,
    /// The lines that were cut; `None` means all.
    pub range: Option<LineRange>,
}

/// The result of a compaction or truncation.
#[apply(answer!)]
pub struct Evicted {
    /// The number of files that are no longer resident.
    pub evicted: u64,
}
