//! Sub-agents without a separate id: those of Gemini CLI run within a tool call
//! of their parent and under its id. What tools do until that call returns
//! belongs to the sub-agent (SEEN-5). Several such calls in parallel cannot be
//! distinguished, so they count as one sub-agent.

use std::collections::HashMap;

use touchmark_proto::SessionId;

use super::fields::child;
use super::happened::{Happened, What};

/// The tool that runs a sub-agent.
const TOOL: &str = "invoke_agent";

/// The maximum number of sessions with running sub-agents that are remembered.
const MOST: usize = 1_024;

/// The calls that run sub-agents at the moment, the oldest first, by session.
#[derive(Debug, Default)]
pub(super) struct Scopes(HashMap<SessionId, Vec<String>>);

impl Scopes {
    /// Moves an event to the sub-agent to which it belongs. Returns the
    /// sub-agent that ends with the event.
    pub(super) fn place(
        &mut self,
        happened: &mut Happened,
        tool: Option<&str>,
    ) -> Option<SessionId> {
        let main = happened.session.clone();
        let of = |calls: &[String]| child(&main, calls.first()?);
        match &happened.what {
            What::Before { call, .. } if tool == Some(TOOL) => {
                if self.0.len() < MOST || self.0.contains_key(&main) {
                    self.0.entry(main).or_default().push(call.clone());
                }
                None
            }
            What::After { call, .. } | What::Failed { call, .. } if tool == Some(TOOL) => {
                let calls = self.0.get_mut(&main)?;
                let agent = of(calls);
                // A call that has taken over the first one's name is not in the
                // list by its own.
                let at = calls.iter().position(|known| known == call);
                let at = at.unwrap_or_default();
                // The first call's name stays the name of all calls that run in
                // parallel with it.
                let first = calls.remove(at);
                if let (0, Some(next)) = (at, calls.first_mut()) {
                    *next = first;
                }
                if !calls.is_empty() {
                    return None;
                }
                self.0.remove(&main);
                agent
            }
            What::Before { .. } | What::After { .. } | What::Failed { .. } => {
                let agent = of(self.0.get(&main)?)?;
                happened.session = agent;
                happened.parent = Some(main);
                None
            }
            What::Start { .. } | What::End | What::Prompt { .. } | What::Stop { .. } => {
                of(&self.0.remove(&main)?)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::happened::Tool;
    use super::*;

    fn event(what: What) -> Happened {
        Happened {
            event: String::new(),
            session: SessionId::new("s").unwrap(),
            parent: None,
            program: touchmark_proto::daemon::Program {
                name: String::new(),
                version: String::new(),
            },
            cwd: None,
            model: None,
            can_tell: true,
            what,
        }
    }

    fn before(call: &str) -> Happened {
        event(What::Before {
            call: call.to_owned(),
            tool: Tool::Other,
        })
    }

    fn after(call: &str) -> Happened {
        event(What::After {
            call: call.to_owned(),
            tool: Tool::Other,
            output: super::super::happened::Output::default(),
            batch_end: true,
        })
    }

    #[test]
    fn what_happens_within_the_call_is_the_sub_agents() {
        let mut scopes = Scopes::default();
        let mut whose = |mut happened: Happened, tool: &str| {
            let ended = scopes.place(&mut happened, Some(tool));
            (
                happened.session.to_string(),
                ended.map(|ended| ended.to_string()),
            )
        };
        let (main, agent) = (("s".to_owned(), None), ("s/a".to_owned(), None));
        assert_eq!(whose(before("r"), "read_file"), main);
        assert_eq!(whose(before("a"), TOOL), main);
        assert_eq!(whose(before("r"), "read_file"), agent);
        assert_eq!(whose(after("r"), "read_file"), agent);
        // A second sub-agent runs in parallel.
        assert_eq!(whose(before("b"), TOOL), main);
        assert_eq!(whose(after("a"), TOOL), main);
        assert_eq!(whose(before("r"), "read_file"), agent);
        let ended = ("s".to_owned(), Some("s/a".to_owned()));
        assert_eq!(whose(after("b"), TOOL), ended);
        assert_eq!(whose(before("r"), "read_file"), main);
        assert_eq!(whose(before("a"), TOOL), main);
        // The call was given up.
        assert_eq!(whose(event(What::Stop { tasks: None }), ""), ended);
    }
}
