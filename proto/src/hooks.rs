//! Requests from agents' hooks: the agent's own words in, what its hook is to
//! print out. What they mean is decided by the daemon.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FreeJson, SessionId};

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// What the agent handed to its hook, verbatim.
            pub input: FreeJson,
        }
    )*};
}

hooks! {
    /// An event of Claude Code.
    HookClaude;
    /// An event of Codex.
    HookCodex;
    /// An event of Gemini CLI.
    HookGemini;
    /// An event of Cursor.
    HookCursor;
    /// An event of opencode, as its plug-in tells it: `phase`, and what
    /// belongs to it (docs/protocol.md).
    HookOpencode;
}

/// An event of any agent's hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookEvent {
    /// The agent, as in `touchmark hook AGENT`; `invalid` for one that is not
    /// known.
    pub agent: String,
    /// What the agent handed to its hook, verbatim.
    pub input: FreeJson,
}

/// What the hook is to print, and how it is to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookPrinted {
    /// One JSON object, by the agent's own schema; `{}` says nothing.
    pub stdout: String,
    /// For people; mostly empty.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
    /// Send it with `hook/ack` once `stdout` is delivered.
    pub ack: Option<String>,
}

/// What a hook printed has been delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookAck {
    /// As the hook's answer named it.
    pub ack: String,
}

/// Which session a tool call of an MCP client belongs to: the one that the
/// hooks of the same agent name, if they were heard (HOOK-9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookJoin {
    /// The MCP server's own session. What it knows becomes the other's.
    pub session: SessionId,
    /// What the client calls itself.
    pub client: Option<String>,
    /// The agent's name of the call, where it gives one to MCP servers.
    pub call_id: Option<String>,
    /// The tool called.
    pub tool: Option<String>,
    /// The call's arguments; need not be said where `call_id` is.
    pub arguments: Option<FreeJson>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookJoined {
    /// The hooks' session; `None` if none is known of that agent.
    pub session: Option<SessionId>,
}
