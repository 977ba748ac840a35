//! Requests about commands: windows of time in which a session runs something
//! that may write any file (ATTR-6).

use crate::{Change, Clock, Millis, SessionId};

/// Opens a command window. A change in the window belongs to the session,
/// unless better evidence names another author (ATTR-6).
#[apply(request!)]
pub struct CommandBegin {
    /// The session that runs the command, by its id or label.
    pub session: SessionId,
    /// The command line or a description, for people.
    pub label: Option<String>,
    /// Only paths that one of these globs matches; `None` means all. Globs are
    /// relative to the workspace. `*` stays within a directory, `**` does not.
    /// A glob without `/` matches at any depth. A glob that matches a directory
    /// matches all files below it.
    pub paths: Option<Vec<String>>,
    /// The id of a process that ends the window when it exits.
    pub pid: Option<u32>,
    /// Whether the window ends with this connection, after 2 s of grace;
    /// default false.
    #[serde(default)]
    pub bind: bool,
    /// The agent's id for the tool call.
    pub call_id: Option<String>,
    /// How long the window may stay open, in milliseconds; the default is
    /// `marks.command_ttl` (10 minutes).
    pub ttl_ms: Option<u64>,
    /// Whether the command is a formatter: if it changes a file within 5 s
    /// after a session's declared version, the change is that session's
    /// (ATTR-17). Default false.
    #[serde(default)]
    pub formatter: bool,
    /// The files that the window covers; default `tracked`.
    pub scope: Option<CommandScope>,
    /// Whether the client runs the command below `touchmark-witness`, with the
    /// ring of this window: see `Places::ring` (ATTR-3). Default false.
    #[serde(default)]
    pub witness: bool,
    /// The id of a window whose command runs this one, and whose witness sees it
    /// too, or the name of an agent's witness. `None` if there is none. No effect
    /// if there is no such witness.
    pub below: Option<String>,
}

/// The files that a command window covers.
#[apply(choice!)]
pub enum CommandScope {
    /// The tracked files.
    Tracked,
    /// All files of the workspace that are not ignored, tracked or not
    /// (SCOPE-1).
    Workspace,
}

/// A command window that was opened.
#[apply(answer!)]
pub struct CommandBegun {
    /// The command's id, such as `c5`.
    pub command: String,
    /// When the window ends, if it is not ended before.
    pub deadline: Millis,
    /// Why the window does not cover all files of its scope, as a sentence for
    /// people (SCOPE-5). `None` if it covers all.
    pub partial: Option<String>,
}

/// Adds a witness to an open window whose command has not begun: the client runs
/// the command below `touchmark-witness`, with the ring of the window (ATTR-3).
#[apply(request!)]
pub struct CommandWitness {
    /// The command's id.
    pub command: String,
}

/// Makes a witness for an agent: the client runs it below `touchmark-witness`. The
/// windows that its hooks open name the witness as `below` (ATTR-3). Without such
/// a window, nothing that the agent writes is attributed by it.
#[apply(request!)]
pub struct AgentWitness {
    /// The id of the process that will be the witness's launcher; `invalidParams`
    /// without it. The witness is needed until this process ends.
    pub pid: Option<u32>,
}

/// A witness that was made.
#[apply(answer!)]
pub struct AgentWitnessed {
    /// The name of the witness and of its ring: see `Places::ring`.
    pub witness: String,
}

/// Ends a command window.
#[apply(request!)]
pub struct CommandEnd {
    /// The command's id. Without it, `session` names the window, with `callId`
    /// if it has one.
    pub command: Option<String>,
    /// The session that ran the command, if `command` is not given.
    pub session: Option<SessionId>,
    /// The agent's id for the tool call; `None` means the session's newest
    /// window.
    pub call_id: Option<String>,
    /// The exit code of the command, if it is known.
    pub exit: Option<i32>,
}

/// The changes that a command made to files that its session tracks (MOD-1).
#[apply(answer!)]
pub struct CommandEnded {
    /// One change per path. `modified/take` does not return them again.
    pub changes: Vec<Change>,
    /// Whether there are more changes; `modified/take` returns them.
    pub more: Option<bool>,
    /// The command, with the number of versions recorded in it, including those
    /// of files that no session tracks.
    pub command: Option<CommandRow>,
    /// Why the window did not cover all files of its scope, as a sentence for
    /// people (SCOPE-5). `None` if it covered all.
    pub partial: Option<String>,
}

/// Lists the newest commands.
#[apply(request!)]
pub struct CommandList {
    /// Only this session's commands; `None` means all.
    pub session: Option<SessionId>,
    /// The maximum number of commands to return; default 100, at most 1,000.
    pub limit: Option<u32>,
}

/// A list of commands.
#[apply(answer!)]
pub struct CommandRows {
    /// The commands, newest first. The newest 1,000 are kept.
    pub commands: Vec<CommandRow>,
}

/// A command of a session, running or ended.
#[apply(answer!)]
pub struct CommandRow {
    /// The command's id, such as `c5`.
    pub command: String,
    /// The session that ran the command.
    pub session: SessionId,
    /// The session's label; `None` if it has none (SES-2).
    pub session_label: Option<String>,
    /// The command line or a description, for people.
    pub label: Option<String>,
    /// The clock when the window opened.
    pub begun: Clock,
    /// The time when the window opened.
    pub begun_at: Millis,
    /// The clock when the window ended; `None` while it is open.
    pub ended: Option<Clock>,
    /// The time when the window ended; `None` while it is open.
    pub ended_at: Option<Millis>,
    /// The exit code, if it was reported.
    pub exit: Option<i32>,
    /// The git branch that was checked out before the command, or the commit if
    /// no branch was. `None` outside git repositories.
    pub branch_before: Option<String>,
    /// The git branch that was checked out after the command, or the commit if
    /// no branch was. `None` outside git repositories.
    pub branch_after: Option<String>,
    /// The number of versions recorded in the window so far.
    pub versions: u64,
    /// Whether a witness has seen all of its writes (ATTR-3).
    #[serde(default)]
    pub witnessed: bool,
    /// Why a witness has not seen all of its writes, as a part of a sentence for
    /// people. `None` if it has, or if there was none.
    pub unwitnessed: Option<String>,
}
