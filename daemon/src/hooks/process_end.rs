//! Waits for the end of an agent's process, and ends what its tools had begun
//! (HOOK-3).

use touchmark_proto::SessionId;

use super::agent::Agent;
use super::agents::first_word;
use super::daemon_handle::DaemonHandle;
use super::happened::{Happened, Tool, What};
use super::rules;
use crate::system::proc;

/// Notes the processes above an event's hook, and waits for the end of its
/// agent.
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
    let (Some(hook), true) = (daemon.cx.process, anew || begins) else {
        return;
    };
    let mut above = proc::and_above(hook);
    let row = Agent::named(&first_word(&happened.program.name));
    if row.is_some_and(|row| row.apart) && !above.is_empty() {
        above.remove(0);
    }
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
            agent_ended(&daemon, &session).await;
        }
    });
}

/// Ends what an agent's tools had begun, since its process has ended (HOOK-3).
async fn agent_ended(daemon: &DaemonHandle, session: &SessionId) {
    daemon.memory.turn(&daemon.cx.inside, session, false);
    let standing = daemon.standing(session).await;
    rules::abort_left(daemon, session, &standing).await;
}
