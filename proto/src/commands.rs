//! Requests about commands: a window in which a session runs something that
//! may write anywhere (ATTR-6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, Millis, SessionId};

/// Opens a window: what is written in it, and claimed by nothing better, is
/// the session's (ATTR-6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandBegin {
    /// Who runs it.
    pub session: SessionId,
    /// What is run, for people.
    pub label: Option<String>,
    /// Only paths that one of these globs matches; all if absent. Relative to
    /// the workspace; `*` stays within a directory, `**` does not; a glob
    /// without `/` may match at any depth; a directory stands for all below.
    pub paths: Option<Vec<String>>,
    /// End it with this process.
    pub pid: Option<u32>,
    /// End it with this connection, after a grace of 2 s.
    #[serde(default)]
    pub bind: bool,
    /// The agent's own name of the tool call.
    pub call_id: Option<String>,
    /// How long the window may stay open; 10 minutes unless told.
    pub ttl_ms: Option<u64>,
    /// What runs is a formatter: what it does to a file within 5 s after any
    /// session's declared version of it is that session's (ATTR-17).
    #[serde(default)]
    pub formatter: bool,
}

/// A window that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandBegun {
    /// Its name.
    pub command: String,
    /// When it ends by itself.
    pub deadline: Millis,
}

/// Ends a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandEnd {
    /// The window, or `session` and `callId` in its place.
    pub command: Option<String>,
    /// Who ran it, where the window is not named.
    pub session: Option<SessionId>,
    /// The agent's own name of the tool call; the session's newest window if
    /// absent.
    pub call_id: Option<String>,
}

/// What a command did to the files that its session holds (MOD-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnded {
    /// One per path; not told again by `modified/take`.
    pub changes: Vec<Change>,
    /// There is more, which `modified/take` tells.
    pub more: Option<bool>,
}
