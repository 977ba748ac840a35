//! What agents' hooks say, and what they are answered.
//!
//! ```text
//!  agent's JSON ─► its agent's row ─► Happened ─► rules ─► Verdict ─► agent's JSON
//!                                                   │
//!                                             ordinary requests
//! ```
//!
//! [`agent`] only translates, by a table. [`rules`] say what each event
//! does, the same for all agents, and do it by asking the daemon what any
//! client could ask ([`DaemonHandle`]), so that every decision is the engine's. An
//! event that is not understood is answered with `{}`: a hook never stands in
//! its agent's way.

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

/// An event of an agent's, in words of no agent. Kept without contents where
/// its hook is not answered ([`Unanswered`]).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Happened {
    /// The event's own name, as the answer has to spell it.
    event: String,
    session: SessionId,
    /// The session that started this one.
    parent: Option<SessionId>,
    program: Program,
    cwd: Option<PathBuf>,
    model: Option<Model>,
    /// The answer can carry a text for the model.
    can_tell: bool,
    what: What,
}

/// A model in use.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Model {
    id: String,
    provider: String,
    mode: String,
    /// The message it answers.
    message: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum What {
    /// A conversation begins; with `kept`, what was read before is still in
    /// its context.
    Start { kept: bool },
    /// It ends.
    End,
    /// The user has said something.
    Prompt {
        id: Option<String>,
        #[serde(skip)]
        text: String,
    },
    /// A tool is about to run.
    Before { call: String, tool: Tool },
    /// A tool has run; with `batch_end`, no event of a batch's end follows.
    After {
        call: String,
        tool: Tool,
        #[serde(skip)]
        output: Output,
        batch_end: bool,
    },
    /// A tool was announced and never ran: nobody permitted it.
    Declined { call: String },
    /// A tool has failed or was interrupted.
    Failed {
        call: String,
        tool: Tool,
        #[serde(skip)]
        output: Output,
    },
    /// All tools that one turn of the model called have run, or never will.
    BatchEnd,
    /// What was read is no longer in the context.
    Compacted,
    /// A sub-agent begins.
    ChildStart,
    /// A sub-agent has ended.
    ChildEnd,
    /// The agent has said its last word for now. `tasks` go on.
    Stop { tasks: Option<Vec<Background>> },
    /// The user has interrupted it.
    Interrupted,
    /// A model has answered.
    ModelUsed,
    /// Nothing that matters here.
    Nothing,
    /// A file's content goes to the model without a tool.
    Attached {
        path: String,
        #[serde(skip)]
        content: Option<String>,
    },
}

/// A task that goes on in the background.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Background {
    id: String,
    is_agent: bool,
    running: bool,
    command: Option<String>,
}

/// What a tool does, as far as it concerns files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
enum Tool {
    /// Puts lines of a file into the context.
    Read(Reading),
    /// Changes files.
    Write { name: String, files: Vec<Writing> },
    /// Runs something that may write anywhere.
    Shell {
        #[serde(serialize_with = "masked")]
        command: String,
    },
    /// Nothing of all that.
    Other,
}

/// Where an event is kept, its command is so without secrets (SEC-3).
fn masked<S: Serializer>(command: &str, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&tokens::masked(command))
}

impl Tool {
    /// A tool that changes one file.
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

/// Which lines of which file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Reading {
    path: String,
    /// The first line, from 1.
    start: Option<u32>,
    /// At most this many lines.
    limit: Option<u32>,
}

/// One file that a tool changes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Writing {
    path: String,
    #[serde(skip)]
    change: Change,
}

/// How.
#[derive(Clone, Debug, Default, PartialEq)]
enum Change {
    /// It will hold this.
    Whole(String),
    /// Texts in it are replaced, one after the other.
    Replace(Vec<Replacement>),
    /// Hunks of a patch are applied to it, or to the file of another name.
    Patch {
        from: Option<String>,
        hunks: Vec<patch::Hunk>,
    },
    /// It will be gone.
    Delete,
    /// Nobody can say.
    #[default]
    Unknown,
}

impl Change {
    /// Whether it says which lines become others, so that the file's bytes are
    /// needed to know what comes of it.
    fn names_lines(&self) -> bool {
        matches!(self, Self::Replace(_) | Self::Patch { .. })
    }
}

/// One text in place of another.
#[derive(Clone, Debug, PartialEq)]
struct Replacement {
    old: String,
    new: String,
    all: bool,
}

/// What a tool has answered.
#[derive(Clone, Debug, Default, PartialEq)]
struct Output {
    /// As the agent handed it on.
    raw: Value,
    /// The text of it.
    text: Option<String>,
    /// Of a file: the first line shown, how many, and how many it has.
    shown: Option<(u32, u32, u32)>,
    /// The agent lets a hook put another output in its place.
    replaceable: bool,
}

/// What the rules came to.
#[derive(Clone, Debug, Default, PartialEq)]
enum Verdict {
    /// Nothing to say.
    #[default]
    Nothing,
    /// The tool must not run; why.
    Deny(String),
    /// The agent's user decides whether it runs; what he is told. Only for
    /// agents of which `Agent::asks` is true.
    Ask(String),
    /// A text for the model.
    Tell(String),
    /// This in place of the tool's output.
    Replace(Value),
}

/// What became of an event.
#[derive(Debug)]
pub(crate) struct Answered {
    /// For the hook.
    pub(crate) printed: HookPrinted,
    /// What takes back what it has begun, if nobody hears the answer.
    pub(crate) undo: Vec<Request>,
}

/// What a hook prints that has nothing to say.
pub(crate) fn silence() -> HookPrinted {
    HookPrinted {
        stdout: "{}".to_owned(),
        stderr: String::new(),
        exit: 0,
        ack: None,
    }
}

/// Where the workspace of an event is looked for: at the file that it is about,
/// or where its agent works; the agent by the name of its command.
pub fn place(agent: &str, input: &Value) -> Option<PathBuf> {
    Agent::named(agent)?.speaker(input).place(input)
}

/// Lets an event of `agent` take effect that came by the hook of `hook`, mostly
/// the same, and says what the hook is to print.
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

/// Hears that what a hook printed was delivered.
///
/// # Errors
/// For a token that no answer named.
pub(crate) async fn acknowledge(
    daemon: &DaemonHandle,
    ack: &str,
) -> Result<(), touchmark_proto::Error> {
    rules::acknowledge(daemon, ack).await
}

/// Says which session an MCP client's call belongs to.
pub(crate) async fn join(daemon: &DaemonHandle, asked: HookJoin) -> HookJoined {
    HookJoined {
        session: identity::join(daemon, asked).await,
    }
}
