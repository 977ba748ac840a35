//! The events of agents' hooks, and the answers to them.
//!
//! ```text
//!  agent's JSON ─► its agent's row ─► Happened ─► rules ─► Verdict ─► agent's JSON
//!                                                   │
//!                                             ordinary requests
//! ```
//!
//! [`agent`] translates between an agent's JSON and [`Happened`], by a table.
//! [`rules`] decide what each event does, in the same way for all agents. They
//! do it with the requests that any client could make ([`DaemonHandle`]), so
//! that every decision is the engine's. An event that is not understood is
//! answered with `{}`: a hook never blocks its agent.

pub mod agent;
mod agents;
mod allowed;
pub(crate) mod comments;
mod daemon_handle;
mod destroys;
mod details;
mod edits;
mod fields;
#[cfg(any(test, fuzzing))]
#[path = "../../../fuzz/hooks.rs"]
pub(crate) mod fuzzed;
mod happened;
mod identity;
mod last_events;
mod links;
mod memory;
mod named;
mod notice;
mod notices;
mod odd;
mod patch;
mod process_end;
mod rules;
mod running;
mod scopes;
mod shell;
mod shell_patch;
mod shown;
mod twice;
mod unanswered;
mod undone;
mod whose;
mod wiped;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use futures_util::FutureExt as _;
use serde_json::Value;
use touchmark_proto::hooks::{
    HookAllow, HookAllowed, HookEvent, HookJoin, HookJoined, HookPrinted,
};
use touchmark_proto::off::UsersOnly;
use touchmark_proto::{Request, SessionId};

use crate::config::Unsaved;
pub(crate) use agent::Agent;
pub(crate) use daemon_handle::DaemonHandle;
use happened::{Happened, What};
use last_events::LastEvent;
pub(crate) use memory::Memory;
pub(crate) use shell::shell;
pub use unanswered::Unanswered;
pub(crate) use unanswered::waiting;

/// The result of processing an event.
#[derive(Debug)]
pub(crate) struct Answered {
    /// What the hook prints.
    pub(crate) printed: HookPrinted,
    /// The requests that revert what was begun, if the agent no longer waits
    /// for the answer.
    pub(crate) undo: Vec<Request>,
}

/// Returns the output of a hook that has no answer.
pub(crate) fn silence() -> HookPrinted {
    HookPrinted {
        stdout: "{}".to_owned(),
        stderr: String::new(),
        exit: 0,
        ack: None,
    }
}

/// Returns where to look for the workspace of an event: at the file that it
/// names, or in the agent's working directory. `agent` is the name of the
/// hook's command.
pub fn place(agent: &str, input: &Value) -> Option<PathBuf> {
    Agent::named(agent)?.speaker(input).place(input)
}

/// Returns the session that an event names; `None` if it is not understood. A
/// sub-agent's event may name its parent's.
pub(crate) fn session(ask: &HookEvent) -> Option<SessionId> {
    Agent::named(&ask.agent)?
        .speaker(&ask.input.0)
        .session(&ask.input.0)
}

/// Processes an event that arrived through the hook of `hook`. Returns what the
/// hook must print: nothing, if the rules panic.
pub(crate) async fn answer(
    hook: &'static Agent,
    input: Value,
    mut daemon: DaemonHandle,
) -> Answered {
    let agent = hook.speaker(&input);
    daemon.settings.gate = daemon.cx.config.gate(agent.name);
    daemon.settings.attaches = agent.attaches;
    if !agent.asks {
        daemon.settings.unsaved = daemon.settings.unsaved.min(Unsaved::Deny);
    }
    let answered = answer_from(hook, agent, input, &daemon);
    let answered = AssertUnwindSafe(answered).catch_unwind().await;
    answered.unwrap_or_else(|_| {
        tracing::error!("a hook's rules broke off");
        Answered {
            printed: silence(),
            undo: Vec::new(),
        }
    })
}

/// Processes an event of `agent`, usually that of `hook`.
async fn answer_from(
    hook: &'static Agent,
    agent: &'static Agent,
    input: Value,
    daemon: &DaemonHandle,
) -> Answered {
    let agent::Heard {
        mut happened,
        odd,
        knows_tool,
    } = agent.read(&input);
    let mut ended = None;
    let mut is_own_tool = false;
    if let Some(happened) = &mut happened {
        let tool = fields::text(&input, &["tool_name"]);
        ended = daemon.memory.scopes(|scopes| scopes.place(happened, tool));
        is_own_tool = identity::announce(daemon, happened, &input);
    }
    let session = match &happened {
        Some(happened) => Some(happened.session.clone()),
        None => agent.session(&input),
    };
    drop(input);
    daemon.memory.heard(
        agent.name,
        &LastEvent {
            happened: happened.as_ref(),
            odd: odd.as_ref(),
            session: session.as_ref(),
            knows_tool,
        },
        daemon.cx.now,
    );
    if let Some(odd) = odd {
        let session = happened.as_ref().and(session);
        odd::heard(daemon, agent, session, &odd);
    }
    let mut answered = Answered {
        printed: silence(),
        undo: Vec::new(),
    };
    let Some(happened) = happened else {
        return answered;
    };
    unanswered::make_up(daemon).await;
    if !daemon.memory.is_first(&happened, hook.name) {
        return answered;
    }
    let event = happened.event.clone();
    let session = happened.can_tell.then(|| happened.session.clone());
    daemon.memory.hear(&happened);
    process_end::follow(daemon, &happened, is_own_tool);
    if let Some(session) = ended {
        let over = Happened {
            session,
            parent: Some(happened.session.clone()),
            can_tell: false,
            what: What::ChildEnd,
            ..happened.clone()
        };
        rules::follow(daemon, over).await;
    }
    // An agent that takes no text with a prompt gets comments with another event.
    let is_prompt = matches!(happened.what, What::Prompt { .. });
    let takes_comments = is_prompt || !agent.tells_prompts();
    let turn = matches!(happened.what, What::Stop { .. }) && agent.shows;
    let turn = turn.then(|| happened.session.clone());
    let mut outcome = rules::follow(daemon, happened).await;
    if let Some(session) = session {
        outcome = rules::with_late(daemon, &session, outcome, takes_comments);
    }
    if let Some(session) = turn {
        let text = rules::by_commands(daemon, &session).await;
        let both = outcome.shown.into_iter().chain(text);
        outcome.shown = both.reduce(|one, other| format!("{one}\n{other}"));
    }
    answered.printed = agent.print(&event, outcome.verdict, outcome.shown);
    answered.printed.ack = outcome.ack;
    answered.undo = outcome.undo;
    answered
}

/// Handles a client's report that what a hook printed was delivered.
///
/// # Errors
/// `ack` is not a token that an answer named.
pub(crate) async fn acknowledge(
    daemon: &DaemonHandle,
    ack: &str,
) -> Result<(), touchmark_proto::Error> {
    rules::acknowledge(daemon, ack).await
}

/// Returns which session an MCP client's call belongs to.
pub(crate) async fn join(daemon: &DaemonHandle, asked: HookJoin) -> HookJoined {
    HookJoined {
        session: identity::join(daemon, asked).await,
    }
}

/// Returns an error if the requesting process runs below an agent (OFF-5).
///
/// # Errors
/// `denied`.
pub(crate) fn by_the_user(
    daemon: &DaemonHandle,
    what: UsersOnly,
) -> Result<(), touchmark_proto::Error> {
    allowed::by_the_user(daemon, Some(what))
}

/// Allows the next write of a file after a denial (OFF-4).
///
/// # Errors
/// `denied`, `outsideWorkspace`, `notAFile`, `notFound`.
pub(crate) fn allow(
    daemon: &DaemonHandle,
    asked: &HookAllow,
) -> Result<HookAllowed, touchmark_proto::Error> {
    allowed::allow(daemon, asked)
}
