//! Makes one session of an agent's hooks and its MCP calls (HOOK-9).
//!
//! A hook that announces a call of one of touchmark's own tools names the
//! session, or the sub-agent's session, from which the call will come. The call
//! is recognised by the agent's id for it if MCP servers receive that id;
//! otherwise by its tool and arguments, if it comes from below the same agent.
//! If no hook announces the call, the session is that of the agent below which
//! the MCP server runs.

use std::collections::VecDeque;

use serde_json::Value;
use touchmark_engine::Input;
use touchmark_proto::hooks::HookJoin;
use touchmark_proto::{FreeJson, Hash, SessionId};

use super::daemon_handle::DaemonHandle;
use super::fields::{self, text};
use super::happened::{Happened, What};
use crate::system::proc;
use crate::system::process::Process;

/// The maximum number of announced calls that are remembered; a call that was
/// declined is never made.
const CALLS: usize = 256;

/// A call of one of touchmark's tools that a hook has announced.
#[derive(Debug)]
struct Announced {
    session: SessionId,
    call: String,
    tool: String,
    arguments: Hash,
}

/// The announced calls that were not made yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls(VecDeque<Announced>);

impl Calls {
    fn announce(&mut self, announced: Announced) {
        let again = |known: &Announced| {
            (&known.session, &known.call) == (&announced.session, &announced.call)
        };
        if self.0.iter().any(again) {
            return;
        }
        self.0.push_back(announced);
        if self.0.len() > CALLS {
            self.0.pop_front();
        }
    }

    /// Returns the session whose announced call an MCP server received, and
    /// forgets the announcement. `may_be` returns whether the call can come
    /// from a session's agent; `None` if that agent's process is not known.
    fn made(
        &mut self,
        asked: &HookJoin,
        may_be: impl Fn(&SessionId) -> Option<bool>,
    ) -> Option<SessionId> {
        let at = match &asked.call_id {
            Some(id) => {
                let id = fields::call(Some(id), "", &Value::Null);
                let is_it = |known: &Announced| known.call == id;
                self.0
                    .iter()
                    .position(|known| is_it(known) && may_be(&known.session) != Some(false))
            }
            None => {
                let tool = asked.tool.as_deref()?;
                let arguments = fingerprint(asked.arguments.as_ref().map(|all| &all.0));
                let is_it = |known: &Announced| known.tool == tool && known.arguments == arguments;
                self.0
                    .iter()
                    .position(|known| is_it(known) && may_be(&known.session) == Some(true))
            }
        };
        self.0.remove(at?).map(|made| made.session)
    }
}

/// Returns the tool of touchmark's MCP server that an agent calls by this name;
/// `None` if it is none of them.
fn own_tool(name: &str) -> Option<&str> {
    let name = name.trim_start_matches("mcp__").trim_start_matches("mcp_");
    // Claude Code adds this prefix if the server comes from a plug-in.
    let name = name.trim_start_matches("plugin_touchmark_");
    let tool = name.strip_prefix("touchmark")?;
    let after = ["__", "_", ".", "/", "-"];
    after.iter().find_map(|between| tool.strip_prefix(between))
}

fn fingerprint(arguments: Option<&Value>) -> Hash {
    let all = arguments.cloned().unwrap_or_default();
    // Missing arguments and empty arguments are the same.
    let all = match all.is_null() {
        true => Value::Object(serde_json::Map::new()),
        false => all,
    };
    Hash::of(FreeJson(all).canonical().as_bytes())
}

/// Remembers a call of one of touchmark's own tools, if the event announces
/// one. Returns whether it does.
pub(super) fn announce(daemon: &DaemonHandle, happened: &Happened, input: &Value) -> bool {
    let What::Before { call, .. } = &happened.what else {
        return false;
    };
    let Some(tool) = text(input, &["tool_name", "tool"]).and_then(own_tool) else {
        return false;
    };
    let arguments = ["tool_input", "args"]
        .iter()
        .find_map(|name| input.get(name));
    let announced = Announced {
        session: happened.session.clone(),
        call: call.clone(),
        tool: tool.to_owned(),
        arguments: fingerprint(arguments),
    };
    daemon.memory.calls(|calls| calls.announce(announced));
    true
}

/// Returns the session of the hooks to which an MCP client's call belongs, if
/// one is known. That session inherits what the MCP server's own session knew.
pub(super) async fn join(daemon: &DaemonHandle, asked: HookJoin) -> Option<SessionId> {
    let above: Vec<Process> = daemon.cx.process.map(proc::and_above).unwrap_or_default();
    let below = |session: &SessionId| {
        let agent = daemon.memory.agents(|agents| agents.agent(session))?;
        (!above.is_empty()).then(|| above.contains(&agent))
    };
    let announced = daemon.memory.calls(|calls| calls.made(&asked, below));
    let found = announced.or_else(|| {
        let client = asked.client.as_deref().unwrap_or_default();
        daemon
            .memory
            .agents(|agents| agents.above_client(&above, client))
    });
    let session = found.filter(|session| *session != asked.session)?;
    if !daemon.standing(&session).await.open {
        return None;
    }
    if daemon.standing(&asked.session).await.open {
        daemon.cx.inside.feed(Input::Inherited {
            session: session.clone(),
            from: asked.session,
            over: true,
        });
    }
    Some(session)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn announced(session: &str, call: &str, arguments: &Value) -> Announced {
        Announced {
            session: SessionId::new(session).unwrap(),
            call: call.to_owned(),
            tool: "read_file".to_owned(),
            arguments: fingerprint(Some(arguments)),
        }
    }

    fn asked(call: Option<&str>, arguments: Value) -> HookJoin {
        HookJoin {
            call_id: call.map(str::to_owned),
            tool: Some("read_file".to_owned()),
            arguments: Some(FreeJson(arguments)),
            ..HookJoin::new(SessionId::new("mcp").unwrap())
        }
    }

    #[test]
    fn the_names_that_agents_give_its_tools() {
        for name in [
            "mcp__touchmark__read_file",
            "mcp__plugin_touchmark_touchmark__read_file",
            "mcp__touchmark.read_file",
            "mcp_touchmark_read_file",
            "touchmark_read_file",
            "touchmark-read_file",
        ] {
            assert_eq!(own_tool(name), Some("read_file"), "{name}");
        }
        for name in ["Read", "mcp__other__read_file", "touchmarked", "touchmark"] {
            assert_eq!(own_tool(name), None, "{name}");
        }
    }

    #[test]
    fn a_call_is_known_again_once() {
        let mut calls = Calls::default();
        let (a, b) = (json!({"path": "a"}), json!({"path": "b"}));
        calls.announce(announced("one", "1", &a));
        calls.announce(announced("one", "1", &a));
        calls.announce(announced("one/child", "2", &a));
        let anybody = |_: &SessionId| Some(true);
        let by_name = |session: Option<SessionId>| session.map(|session| session.to_string());
        let made = calls.made(&asked(Some("2"), json!({})), anybody);
        assert_eq!(by_name(made).as_deref(), Some("one/child"));
        assert_eq!(calls.made(&asked(Some("2"), json!({})), anybody), None);
        assert_eq!(calls.made(&asked(None, b), anybody), None);
        let nobody = |_: &SessionId| Some(false);
        assert_eq!(calls.made(&asked(None, a.clone()), nobody), None);
        assert_eq!(calls.made(&asked(Some("1"), json!({})), nobody), None);
        // A call is recognised by its arguments alone only if the agent is
        // known.
        assert_eq!(calls.made(&asked(None, a.clone()), |_| None), None);
        let made = calls.made(&asked(None, a.clone()), anybody);
        assert_eq!(by_name(made).as_deref(), Some("one"));
        assert_eq!(calls.made(&asked(None, a), anybody), None);
    }
}
