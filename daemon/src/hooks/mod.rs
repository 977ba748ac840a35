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

mod agent;
mod agents;
mod daemon_handle;
mod destroys;
mod edits;
mod fields;
mod identity;
mod last_events;
mod memory;
mod named;
mod notice;
mod odd;
mod patch;
mod rules;
mod running;
mod scopes;
mod shell;
mod shell_patch;
mod shown;
mod twice;
mod unanswered;
mod undone;

use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use touchmark_engine::text::tokens;
use touchmark_proto::daemon::Program;
use touchmark_proto::hooks::{HookJoin, HookJoined, HookPrinted};
use touchmark_proto::{Request, SessionId};

pub(crate) use agent::Agent;
pub(crate) use daemon_handle::{Consult, DaemonHandle, Settings, Standing};
pub(crate) use memory::Memory;
use unanswered::Held;
pub use unanswered::Unanswered;
pub(crate) use unanswered::waiting;

/// An agent's event, in terms that are the same for all agents. If its hook
/// gets no answer in time, it is stored without contents ([`Unanswered`]).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Happened {
    /// The event's name, as the answer must spell it.
    event: String,
    session: SessionId,
    /// The session that started this one; `None` for a main conversation.
    parent: Option<SessionId>,
    program: Program,
    cwd: Option<PathBuf>,
    model: Option<Model>,
    /// Whether the answer can contain a text for the model.
    can_tell: bool,
    what: What,
}

/// A model that an agent uses.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Model {
    id: String,
    provider: String,
    mode: String,
    /// The message that the model answers; `None` if unknown.
    message: Option<String>,
}

/// What an event reports.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum What {
    /// A conversation begins. With `kept`, what it read before is still in its
    /// context.
    Start { kept: bool },
    /// The conversation ends.
    End,
    /// The user has sent a prompt.
    Prompt {
        id: Option<String>,
        #[serde(skip)]
        text: String,
    },
    /// A tool is about to run.
    Before { call: String, tool: Tool },
    /// A tool has run. With `batch_end`, no separate event for the end of the
    /// batch follows.
    After {
        call: String,
        tool: Tool,
        #[serde(skip)]
        output: Output,
        batch_end: bool,
    },
    /// A tool was announced and will never run, since it was not permitted.
    Declined { call: String },
    /// A tool has failed or was interrupted.
    Failed {
        call: String,
        tool: Tool,
        #[serde(skip)]
        output: Output,
    },
    /// All tools that one turn of the model called have run or will never run.
    BatchEnd,
    /// What was read before is no longer in the context.
    Compacted,
    /// A sub-agent begins.
    ChildStart,
    /// A sub-agent has ended.
    ChildEnd,
    /// The agent has ended its answer. `tasks` continue in the background;
    /// `None` if the agent does not list them.
    Stop { tasks: Option<Vec<Background>> },
    /// The user has interrupted the agent.
    Interrupted,
    /// A model has answered.
    ModelUsed,
    /// An event without an effect here.
    Nothing,
    /// A file's content is sent to the model without a tool.
    Attached {
        path: String,
        #[serde(skip)]
        content: Option<String>,
    },
}

/// A task in the background.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Background {
    id: String,
    is_agent: bool,
    running: bool,
    command: Option<String>,
}

/// What a tool does to files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum Tool {
    /// Puts lines of a file into the context.
    Read(Reading),
    /// Changes files.
    Write { name: String, files: Vec<Writing> },
    /// Runs a command that may write anywhere.
    Shell {
        #[serde(serialize_with = "masked")]
        command: String,
    },
    /// Does nothing that concerns files.
    Other,
}

/// Serialises a command without the secrets in it (SEC-3), for events that are
/// stored.
fn masked<S: Serializer>(command: &str, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&tokens::masked(command))
}

impl Tool {
    /// Returns a tool that changes one file.
    fn write(name: &str, path: &str, change: Change) -> Self {
        Self::Write {
            name: name.to_owned(),
            files: vec![Writing {
                path: path.to_owned(),
                change,
            }],
        }
    }
}

/// The lines of a file that a tool reads.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Reading {
    path: String,
    /// The first line, from 1; `None` for the beginning of the file.
    start: Option<u32>,
    /// The maximum number of lines; `None` for all.
    limit: Option<u32>,
}

/// One file that a tool changes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Writing {
    path: String,
    #[serde(skip)]
    change: Change,
}

/// How a tool changes a file.
#[derive(Clone, Debug, Default, PartialEq)]
enum Change {
    /// The file's new content is this text.
    Whole(String),
    /// Texts in the file are replaced, one after the other.
    Replace(Vec<Replacement>),
    /// Hunks of a patch are applied to the file, or to the file `from`, whose
    /// result gets this name.
    Patch {
        from: Option<String>,
        hunks: Vec<patch::Hunk>,
    },
    /// The file is removed.
    Delete,
    /// The result is not known in advance.
    #[default]
    Unknown,
}

impl Change {
    /// Returns whether the change is given by lines, so that the file's bytes
    /// are needed to compute the result.
    fn names_lines(&self) -> bool {
        matches!(self, Self::Replace(_) | Self::Patch { .. })
    }
}

/// One replacement of a text by another.
#[derive(Clone, Debug, PartialEq)]
struct Replacement {
    old: String,
    new: String,
    all: bool,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
struct Output {
    /// The result as JSON, as the agent sent it.
    raw: Value,
    /// The text in the result; `None` if none was found.
    text: Option<String>,
    /// For a read: the first line shown, the number of lines shown, and the
    /// number of lines of the file.
    shown: Option<(u32, u32, u32)>,
    /// Whether a hook may replace this output.
    replaceable: bool,
}

/// The decision of the rules about an event.
#[derive(Clone, Debug, Default, PartialEq)]
enum Verdict {
    /// The answer is empty.
    #[default]
    Nothing,
    /// The tool must not run, with the reason.
    Deny(String),
    /// The agent's user decides whether the tool runs, with the text to show.
    /// Only for agents with `Agent::asks`.
    Ask(String),
    /// A text for the model.
    Tell(String),
    /// This value replaces the tool's output.
    Replace(Value),
}

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

/// Processes an event of `agent` that arrived through the hook of `hook`,
/// usually the same agent. Returns what the hook must print.
pub(crate) async fn answer(
    hook: &'static Agent,
    agent: &'static Agent,
    input: Value,
    daemon: &DaemonHandle,
) -> Answered {
    let agent::Heard { mut happened, odd } = agent.read(&input);
    let mut ended = None;
    let mut is_own_tool = false;
    if let Some(happened) = &mut happened {
        let tool = fields::text(&input, &["tool_name"]);
        ended = daemon.memory.scopes(|scopes| scopes.place(happened, tool));
        is_own_tool = identity::announce(daemon, happened, &input);
    }
    drop(input);
    if let Some(odd) = odd {
        let session = happened.as_ref().map(|happened| happened.session.clone());
        odd::heard(daemon, agent, session, &odd);
    }
    let mut answered = Answered {
        printed: silence(),
        undo: Vec::new(),
    };
    let Some(happened) = happened else {
        return answered;
    };
    daemon.memory.heard(agent.name, &happened, daemon.now);
    unanswered::make_up(daemon).await;
    if !daemon.memory.is_first(&happened, hook.name) {
        return answered;
    }
    let event = happened.event.clone();
    let session = happened.can_tell.then(|| happened.session.clone());
    daemon.memory.hear(&happened);
    agents::follow(daemon, &happened, is_own_tool);
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
    let mut outcome = rules::follow(daemon, happened).await;
    if let Some(session) = session {
        outcome = rules::with_late(daemon, &session, outcome);
    }
    answered.printed = agent.print(&event, outcome.verdict);
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
