//! Finds the process of each agent, so that what its tools had begun ends with
//! it (HOOK-3). It is the nearest common ancestor of two of a session's hooks.
//! A shell or a runner between the agent and its hook is a different process
//! for each event.

use std::collections::VecDeque;

use touchmark_proto::SessionId;

use super::agent::Agent;
use super::happened::Happened;
use crate::system::proc;
use crate::system::process::Process;

/// The maximum number of sessions whose agents are known; the oldest is
/// forgotten first.
const SESSIONS: usize = 1_024;

/// The agents of all sessions.
#[derive(Debug, Default)]
pub(super) struct Agents {
    known: VecDeque<(SessionId, Above)>,
    /// The processes above the one that started the daemon. They are the user's,
    /// also if hooks run below them; none if a hook has started it.
    users: Vec<Process>,
    /// The number of hooks so far.
    heard: u64,
}

/// What is known of the processes above a session's hooks.
#[derive(Debug, Default)]
struct Above {
    /// The processes above all hooks so far, the nearest first.
    common: Vec<Process>,
    /// The agent's process, whose end is waited for; `None` until it is known.
    agent: Option<Process>,
    /// The first word of the agent's name.
    program: String,
    /// Whether the session is a sub-agent's.
    is_child: bool,
    /// The number of the session's newest hook.
    heard: u64,
}

/// Returns the first word of a program's name: `claude-code` and `Claude` are
/// the same agent.
pub(super) fn first_word(name: &str) -> String {
    let word = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .next();
    word.unwrap_or_default().to_ascii_lowercase()
}

impl Agents {
    /// Notes that a hook has run below these processes, the nearest first. With
    /// `anew`, the agent may be another process than before. Returns the
    /// process whose end must be waited for from now on; `None` if it has not
    /// changed.
    pub(super) fn heard(
        &mut self,
        session: &SessionId,
        above: Vec<Process>,
        anew: bool,
    ) -> Option<Process> {
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

    /// Notes that a process has ended. Returns whether it was the session's
    /// agent.
    pub(super) fn ended(&mut self, session: &SessionId, process: Process) -> bool {
        let own = |(whose, above): &(_, Above)| whose == session && above.agent == Some(process);
        let is_agent = self.known.iter().any(own);
        if is_agent {
            self.forget(session);
        }
        is_agent
    }

    /// Notes the agent's name and whether it is a sub-agent.
    pub(super) fn describe(&mut self, happened: &Happened) {
        let is_it = |(whose, _): &&mut (SessionId, Above)| *whose == happened.session;
        if let Some((_, known)) = self.known.iter_mut().find(is_it) {
            known.program = first_word(&happened.program.name);
            known.is_child = happened.parent.is_some();
        }
    }

    /// Returns no agents, for a daemon that was just started by the parent of
    /// this process.
    pub(super) fn below_starter() -> Self {
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let parent = u32::try_from(parent).unwrap_or_default();
        let by_hook = proc::command_line(parent)
            .get(1)
            .is_some_and(|word| word == "hook");
        Self {
            users: match by_hook {
                true => Vec::new(),
                false => proc::and_above(parent),
            },
            ..Self::default()
        }
    }

    /// Returns the agent's process among these (OFF-5).
    pub(super) fn above(&self, processes: &[Process]) -> Option<Process> {
        let agents = self.known.iter().filter_map(|(_, known)| known.agent);
        let mut own = agents.filter(|agent| !self.users.contains(agent));
        own.find(|agent| processes.contains(agent))
    }

    /// Returns the process of a session's agent.
    pub(super) fn agent(&self, session: &SessionId) -> Option<Process> {
        let known = self.known.iter().find(|(whose, _)| whose == session)?;
        known.1.agent
    }

    /// Returns the row of a session's agent; `None` if it is not known.
    pub(super) fn row(&self, session: &SessionId) -> Option<&'static Agent> {
        let known = self.known.iter().find(|(whose, _)| whose == session)?;
        Agent::named(&known.1.program)
    }

    /// Returns the session of the agent below which an MCP client of this name
    /// runs, by the processes above the client's server. Of the nearest agent's
    /// conversations it is the one with the newest hook. If that agent is
    /// another program, the result is `None`: the client has other hooks, or
    /// none.
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

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.known.retain(|(whose, _)| whose != session);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::hooks::happened::What;

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
        // The processes are: hook, its shell, agent, terminal.
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
        // Two agents run in one terminal, process 2; the first has a sub-agent.
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
        // Another program that the agent runs, without hooks.
        assert_eq!(of(&agents, &[34, 8, 5, 2], "codex-mcp-client"), None);
        // A new conversation begins in the same process; the old one has not
        // ended.
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
        // The terminal is not the agent, though both agents ran in it.
        assert_eq!(agents.heard(&session, above(&[13, 6, 2]), true), None);
        let agent = agents.heard(&session, above(&[14, 6, 2]), false);
        assert_eq!(agent, above(&[6]).pop());
    }
}
