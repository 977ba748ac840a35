//! Requests from agents' hooks. They carry the agent's own JSON in, and the
//! text that the hook prints out. The daemon decides what the JSON means.

use crate::{ClientPath, FreeJson, RelPath, SessionId};

/// An event of a hook of any agent.
#[apply(request!)]
pub struct HookEvent {
    /// The agent's name, as in `touchmark hook AGENT`; `invalid` for an unknown
    /// agent.
    pub agent: String,
    /// The JSON that the agent passed to its hook, unchanged.
    pub input: FreeJson,
}

/// What the hook prints, and its exit code.
#[apply(answer!)]
pub struct HookPrinted {
    /// What the hook prints to standard output: one JSON object in the agent's
    /// schema. `{}` has no effect.
    pub stdout: String,
    /// What the hook prints to standard error, for people; usually empty.
    pub stderr: String,
    /// The hook's exit code.
    pub exit: u8,
    /// The value to send in `hook/ack` after `stdout` was delivered; `None` if
    /// nothing has to be confirmed.
    pub ack: Option<String>,
}

/// Confirms that the output of a hook was delivered.
#[apply(request!)]
pub struct HookAck {
    /// The value from the hook's answer.
    pub ack: String,
}

/// Requests the session that a tool call of an MCP client belongs to: the
/// session that the hooks of the same agent name, if there were any (HOOK-9).
#[apply(request!)]
pub struct HookJoin {
    /// The MCP server's own session. What it has on record moves to the session
    /// that is found.
    pub session: SessionId,
    /// The name that the client gives for itself.
    pub client: Option<String>,
    /// The agent's id for the call, if it passes one to MCP servers.
    pub call_id: Option<String>,
    /// The name of the tool.
    pub tool: Option<String>,
    /// The call's arguments; not needed with `call_id`.
    pub arguments: Option<FreeJson>,
}

/// The result of `hook/join`.
#[apply(answer!)]
pub struct HookJoined {
    /// The session that the hooks name; `None` if no hook event of that agent
    /// is known.
    pub session: Option<SessionId>,
}

/// Adds a witness to the window of an agent's command (ATTR-3). The requesting
/// process leads the command's session of the operating system, and its child
/// will run the command below `touchmark-witness`. `notFound` if no hook has
/// announced this command, or if it has a witness.
#[apply(request!)]
pub struct HookShell {
    /// What the agent tells its shell to run. The command is in it, after `eval`.
    pub line: String,
}

/// The result of `hook/shell`.
#[apply(answer!)]
pub struct HookShellBegun {
    /// The id of the command's window, which names the ring: see `Places::ring`.
    pub command: String,
}

/// Allows the next write of a file to the sessions that a hook has denied it
/// (OFF-4). Refused with `denied` if the requesting process runs below an
/// agent's.
#[apply(request!)]
pub struct HookAllow {
    /// The file; `notFound` if no session was denied it. `None` only checks
    /// whether the requesting process may allow anything.
    pub path: Option<ClientPath>,
}

/// The result of `hook/allow`.
#[apply(answer!)]
pub struct HookAllowed {
    /// The file; `None` if the request named none.
    pub path: Option<RelPath>,
    /// The sessions whose next write of the file passes.
    pub sessions: Vec<SessionId>,
}
