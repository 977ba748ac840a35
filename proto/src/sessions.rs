//! Requests about sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::daemon::Program;
use crate::{Change, ClientPath, Clock, LineRange, Millis, RelPath, SessionId};

/// Opens a session, or comes back to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionOpen {
    /// Its name.
    pub session: SessionId,
    /// The agent's program.
    pub agent: Option<Program>,
    /// The session that started this one, for a sub-agent (SEEN-5).
    pub parent: Option<SessionId>,
    /// The agent's process.
    pub pid: Option<u32>,
}

/// A warning kept for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The files it is about.
    pub files: Vec<crate::RelPath>,
    /// What to say.
    pub note: Option<String>,
    /// When it was stored.
    pub created_at: Millis,
}

/// The session as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpened {
    /// Its name.
    pub session: SessionId,
    /// Whether it was known already.
    pub resumed: bool,
    /// Now.
    pub clock: Clock,
    /// A pending warning: a look, not a take (CHK-2).
    pub warning: Option<Warning>,
    /// What changed while it was away: a look, not a take.
    pub modified: Vec<Change>,
    /// Its short name, for the eyes (SES-2).
    pub label: Option<String>,
    /// Files that could not be read in time: what is said of them is of before
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Ends a session: its open edits and commands are aborted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionClose {
    /// Its name.
    pub session: SessionId,
    /// Also remove what it knew and stored; the version log stays.
    #[serde(default)]
    pub forget: bool,
}

/// Every session known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionList {
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its name.
    pub session: SessionId,
    /// The agent's program.
    pub agent: Option<Program>,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// When it was first opened.
    pub opened_at: Millis,
    /// When it last asked something.
    pub last_active: Millis,
    /// Whether it is open.
    pub open: bool,
    /// Reads recorded.
    pub reads: u64,
    /// Edits begun.
    pub edits: u64,
    /// Files whose copy is stale now.
    pub stale: u64,
    /// Changes not yet delivered.
    pub modified: u64,
    /// Its short name, for the eyes (SES-2).
    pub label: Option<String>,
}

/// Every session known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRows {
    /// By name.
    pub sessions: Vec<SessionRow>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}

/// The session's context was compacted: what it read is no longer in it,
/// but for the files kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionCompacted {
    /// Its name.
    pub session: SessionId,
    /// Files whose text is still in the context.
    #[serde(default)]
    pub keep: Vec<ClientPath>,
}

/// Parts of the session's context were cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionTruncated {
    /// Its name.
    pub session: SessionId,
    /// What was cut.
    pub items: Vec<Truncated>,
}

/// One file whose text was cut from the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Truncated {
    /// The file.
    pub path: ClientPath,
    /// The lines cut; all if absent.
    pub range: Option<LineRange>,
}

/// How many files stopped being resident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evicted {
    /// That many.
    pub evicted: u64,
}
