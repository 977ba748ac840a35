//! Requests about commands: a window in which a session runs something that
//! may write anywhere (ATTR-6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, Clock, Millis, SessionId};

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
    /// Which files it speaks for; `tracked` if absent.
    pub scope: Option<CommandScope>,
}

/// Which files a window speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandScope {
    /// Those that somebody has named before.
    Tracked,
    /// All files of the workspace that are not ignored (SCOPE-1).
    Workspace,
}

/// A window that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandBegun {
    /// Its name.
    pub command: String,
    /// When it ends by itself.
    pub deadline: Millis,
    /// Why it does not speak for all files of its scope, if it does not
    /// (SCOPE-5): for people.
    pub partial: Option<String>,
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
    /// What the command exited with, if that is known.
    pub exit: Option<i32>,
}

/// What a command did to the files that its session holds (MOD-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandEnded {
    /// One per path; not told again by `modified/take`.
    pub changes: Vec<Change>,
    /// There is more, which `modified/take` tells.
    pub more: Option<bool>,
    /// The command, with how many versions were recorded in it, of files that
    /// nobody holds too.
    pub command: Option<CommandRow>,
    /// Why it did not speak for all files of its scope, if it did not
    /// (SCOPE-5): for people.
    pub partial: Option<String>,
}

/// Lists the newest commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandList {
    /// Only this session's.
    pub session: Option<SessionId>,
    /// At most so many; 100 unless told, 1,000 at most.
    pub limit: Option<u32>,
}

/// The newest commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandRows {
    /// The newest first; the newest 1,000 are known.
    pub commands: Vec<CommandRow>,
}

/// A command, open or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandRow {
    /// Its name.
    pub command: String,
    /// Who ran it.
    pub session: SessionId,
    /// The session's label (SES-2).
    pub session_label: Option<String>,
    /// What was run, for people.
    pub label: Option<String>,
    /// When its window opened.
    pub begun: Clock,
    /// The time of that.
    pub begun_at: Millis,
    /// When its window ended; `None` while it is open.
    pub ended: Option<Clock>,
    /// The time of that.
    pub ended_at: Option<Millis>,
    /// What it exited with, where that was said.
    pub exit: Option<i32>,
    /// The branch that was checked out before, or the commit, where there was
    /// none; `None` outside git repositories.
    pub branch_before: Option<String>,
    /// The same afterwards.
    pub branch_after: Option<String>,
    /// Versions recorded in it so far.
    pub versions: u64,
}
