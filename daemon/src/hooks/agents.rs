//! Which process an agent is, so that what its tools had begun ends with it
//! (HOOK-3): the nearest one above two of a session's hooks. A shell or a
//! runner between the agent and its hook is another one for each event.

use std::collections::VecDeque;

use touchmark_proto::SessionId;

use super::daemon_handle::DaemonHandle;
use super::{Happened, Tool, What, rules};
use crate::system::proc;
use crate::system::process::Process;

/// Sessions whose agents are known; the one that was heard of first goes.
const SESSIONS: usize = 1_024;

/// The agents of all sessions.
#[derive(Debug, Default)]
pub(super) struct Agents {
    known: VecDeque<(SessionId, Above)>,
    /// Hooks heard so far.
    heard: u64,
}

/// What stands above the hooks of a session.
#[derive(Debug, Default)]
struct Above {
    /// Processes above each hook so far, the nearest first.
    common: Vec<Process>,
    /// Whose end is waited for.
    agent: Option<Process>,
    /// The first word of the agent's name.
    program: String,
    /// It is a sub-agent's.
    is_child: bool,
    /// The newest of its hooks.
    heard: u64,
}

/// The first word of a program's name: `claude-code` and `Claude` are one.
fn first_word(name: &str) -> String {
    let word = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .next();
    word.unwrap_or_default().to_ascii_lowercase()
}

impl Agents {
    /// A hook has run below these, the nearest first; with `anew`, of an agent
    /// that may be another than before. The process whose end is to be waited
    /// for from now on; `None` if that is no news.
    fn heard(&mut self, session: &SessionId, above: Vec<Process>, anew: bool) -> Option<Process> {
        if anew {
            self.forget(session);
        }
        self.heard += 1;
        let heard = self.heard;
        let Some((_, known)) = self.known.iter_mut().find(|(whose, _)| whose == session) else {
            let first = Above {
                common: above,
                heard,
                ..Above::default()
            };
            self.known.push_back((session.clone(), first));
            if self.known.len() > SESSIONS {
                self.known.pop_front();
            }
            return None;
        };
        known.heard = heard;
        known.common.retain(|process| above.contains(process));
        let nearest = known.common.first().copied();
        if nearest == known.agent {
            return None;
        }
        known.agent = nearest;
        nearest
    }

    /// A process has ended; whether it was the session's agent.
    fn ended(&mut self, session: &SessionId, process: Process) -> bool {
        let own = |(whose, above): &(_, Above)| whose == session && above.agent == Some(process);
        let is_agent = self.known.iter().any(own);
        if is_agent {
            self.forget(session);
        }
        is_agent
    }

    /// What is known of the agent beside its process.
    fn describe(&mut self, happened: &Happened) {
        let is_it = |(whose, _): &&mut (SessionId, Above)| *whose == happened.session;
        if let Some((_, known)) = self.known.iter_mut().find(is_it) {
            known.program = first_word(&happened.program.name);
            known.is_child = happened.parent.is_some();
        }
    }

    /// The process of a session's agent.
    pub(super) fn agent(&self, session: &SessionId) -> Option<Process> {
        let known = self.known.iter().find(|(whose, _)| whose == session)?;
        known.1.agent
    }

    /// The first word of the agent's name.
    pub(super) fn program(&self, session: &SessionId) -> String {
        let known = self.known.iter().find(|(whose, _)| whose == session);
        known
            .map(|(_, known)| known.program.clone())
            .unwrap_or_default()
    }

    /// The session of the agent that an MCP client of this name runs below, by
    /// the processes above its server: of the nearest agent, the conversation
    /// that was heard of last. Another program in between has hooks of its own,
    /// or none.
    pub(super) fn above_client(&self, above: &[Process], client: &str) -> Option<SessionId> {
        let place = |known: &Above| above.iter().position(|one| known.agent == Some(*one));
        let program = first_word(client);
        let own = self.known.iter().filter(|(_, known)| !known.is_child);
        let (_, _, known, session) = own
            .filter_map(|(session, known)| {
                let newest = u64::MAX - known.heard;
                Some((place(known)?, newest, known, session))
            })
            .min_by_key(|(place, newest, ..)| (*place, *newest))?;
        (known.program == program).then(|| session.clone())
    }

    fn forget(&mut self, session: &SessionId) {
        self.known.retain(|(whose, _)| whose != session);
    }
}

/// Has the end of the agent noticed whose event this is.
pub(super) fn follow(daemon: &DaemonHandle, happened: &Happened, is_own_tool: bool) {
    if matches!(happened.what, What::End | What::ChildEnd) {
        daemon
            .memory
            .agents(|agents| agents.forget(&happened.session));
        return;
    }
    let anew = matches!(happened.what, What::Start { .. });
    let begins = is_own_tool
        || matches!(
            happened.what,
            What::Prompt { .. }
                | What::Before {
                    tool: Tool::Write { .. } | Tool::Shell { .. },
                    ..
                }
        );
    let (Some(hook), true) = (daemon.process, anew || begins) else {
        return;
    };
    let above = proc::and_above(hook);
    let session = happened.session.clone();
    let agent = daemon.memory.agents(|agents| {
        let agent = agents.heard(&session, above, anew);
        agents.describe(happened);
        agent
    });
    let Some(agent) = agent else { return };
    let daemon = daemon.at_leisure();
    tokio::spawn(async move {
        let ended = proc::process_end(agent.pid).await.is_ok();
        if ended && daemon.memory.agents(|agents| agents.ended(&session, agent)) {
            rules::agent_ended(&daemon, &session).await;
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn above(pids: &[u32]) -> Vec<Process> {
        let process = |pid: &u32| Process {
            pid: *pid,
            start: 7,
        };
        pids.iter().map(process).collect()
    }

    #[test]
    fn the_agent_is_the_nearest_above_two_hooks() {
        let mut agents = Agents::default();
        let session = SessionId::new("s").unwrap();
        // hook, its shell, agent, terminal
        assert_eq!(agents.heard(&session, above(&[11, 10, 5, 2]), true), None);
        let agent = above(&[5]).pop();
        assert_eq!(agents.heard(&session, above(&[21, 20, 5, 2]), false), agent);
        assert_eq!(agents.heard(&session, above(&[31, 30, 5, 2]), false), None);
        assert!(!agents.ended(&session, above(&[2]).pop().unwrap()));
        assert!(agents.ended(&session, agent.unwrap()));
        assert!(!agents.ended(&session, agent.unwrap()));
    }

    #[test]
    fn an_mcp_client_is_of_the_nearest_agent_of_its_name() {
        let mut agents = Agents::default();
        let happened = |session: &str, name: &str, child: bool| Happened {
            event: String::new(),
            session: SessionId::new(session).unwrap(),
            parent: child.then(|| SessionId::new("parent").unwrap()),
            program: touchmark_proto::daemon::Program {
                name: name.to_owned(),
                version: String::new(),
            },
            cwd: None,
            model: None,
            can_tell: false,
            what: What::Nothing,
        };
        let hear = |agents: &mut Agents, session: &str, pids: [&[u32]; 2], child: bool| {
            for pids in pids {
                let happened = happened(session, "claude-code", child);
                agents.heard(&happened.session, above(pids), false);
                agents.describe(&happened);
            }
        };
        // Two agents in one terminal, 2; the first has a sub-agent.
        hear(&mut agents, "a", [&[11, 5, 2], &[12, 5, 2]], false);
        hear(&mut agents, "b", [&[21, 6, 2], &[22, 6, 2]], false);
        hear(&mut agents, "a/child", [&[13, 5, 2], &[14, 5, 2]], true);
        let of = |agents: &Agents, pids: &[u32], client: &str| {
            let found = agents.above_client(&above(pids), client);
            found.map(|session| session.to_string())
        };
        assert_eq!(
            of(&agents, &[31, 5, 2], "claude-code").as_deref(),
            Some("a")
        );
        assert_eq!(
            of(&agents, &[32, 6, 2], "claude-code").as_deref(),
            Some("b")
        );
        assert_eq!(of(&agents, &[33, 7, 2], "claude-code"), None);
        // Another program that the agent runs, without hooks of its own.
        assert_eq!(of(&agents, &[34, 8, 5, 2], "codex-mcp-client"), None);
        // A new conversation in the same process; the old one has not ended.
        hear(&mut agents, "c", [&[15, 5, 2], &[16, 5, 2]], false);
        assert_eq!(
            of(&agents, &[31, 5, 2], "Claude Code").as_deref(),
            Some("c")
        );
    }

    #[test]
    fn a_conversation_that_goes_on_elsewhere_has_another_agent() {
        let mut agents = Agents::default();
        let session = SessionId::new("s").unwrap();
        agents.heard(&session, above(&[11, 5, 2]), true);
        agents.heard(&session, above(&[12, 5, 2]), false);
        // Not the terminal, which both have run in.
        assert_eq!(agents.heard(&session, above(&[13, 6, 2]), true), None);
        let agent = agents.heard(&session, above(&[14, 6, 2]), false);
        assert_eq!(agent, above(&[6]).pop());
    }
}
