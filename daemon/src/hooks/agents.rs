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
pub(super) struct Agents(VecDeque<(SessionId, Above)>);

/// What stands above the hooks of a session.
#[derive(Debug)]
struct Above {
    /// Processes above each hook so far, the nearest first.
    common: Vec<Process>,
    /// Whose end is waited for.
    agent: Option<Process>,
}

impl Agents {
    /// A hook has run below these, the nearest first; with `anew`, of an agent
    /// that may be another than before. The process whose end is to be waited
    /// for from now on; `None` if that is no news.
    fn heard(&mut self, session: &SessionId, above: Vec<Process>, anew: bool) -> Option<Process> {
        if anew {
            self.forget(session);
        }
        let Some((_, known)) = self.0.iter_mut().find(|(whose, _)| whose == session) else {
            let first = Above {
                common: above,
                agent: None,
            };
            self.0.push_back((session.clone(), first));
            if self.0.len() > SESSIONS {
                self.0.pop_front();
            }
            return None;
        };
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
        let is_agent = self.0.iter().any(own);
        if is_agent {
            self.forget(session);
        }
        is_agent
    }

    fn forget(&mut self, session: &SessionId) {
        self.0.retain(|(whose, _)| whose != session);
    }
}

/// Has the end of the agent noticed whose event this is.
pub(super) fn follow(daemon: &DaemonHandle, happened: &Happened) {
    let anew = matches!(happened.what, What::Start { .. });
    let begins = matches!(
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
    let agent = daemon
        .memory
        .agents(|agents| agents.heard(&session, above, anew));
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
