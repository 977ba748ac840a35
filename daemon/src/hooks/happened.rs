//! What agents' events report, in terms that are the same for all agents, and
//! what is decided about them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use touchmark_engine::text::tokens;
use touchmark_proto::SessionId;
use touchmark_proto::daemon::Program;

use super::patch;

/// An agent's event, in terms that are the same for all agents. If its hook
/// gets no answer in time, it is stored without contents ([`Unanswered`]).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Happened {
    /// The event's name, as the answer must spell it.
    pub(super) event: String,
    pub(super) session: SessionId,
    /// The session that started this one; `None` for a main conversation.
    pub(super) parent: Option<SessionId>,
    pub(super) program: Program,
    pub(super) cwd: Option<PathBuf>,
    pub(super) model: Option<Model>,
    /// Whether the answer can contain a text for the model.
    pub(super) can_tell: bool,
    pub(super) what: What,
}

/// A model that an agent uses.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) provider: String,
    pub(super) mode: String,
    /// The message that the model answers; `None` if unknown.
    pub(super) message: Option<String>,
}

/// What an event reports.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum What {
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
pub(super) struct Background {
    pub(super) id: String,
    pub(super) is_agent: bool,
    pub(super) running: bool,
    pub(super) command: Option<String>,
}

/// What a tool does to files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) enum Tool {
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
    pub(super) fn write(name: &str, path: &str, change: Change) -> Self {
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
pub(super) struct Reading {
    pub(super) path: String,
    /// The first line, from 1; `None` for the beginning of the file.
    pub(super) start: Option<u32>,
    /// The maximum number of lines; `None` for all.
    pub(super) limit: Option<u32>,
}

/// One file that a tool changes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Writing {
    pub(super) path: String,
    #[serde(skip)]
    pub(super) change: Change,
}

/// How a tool changes a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Change {
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
    pub(super) fn names_lines(&self) -> bool {
        matches!(self, Self::Replace(_) | Self::Patch { .. })
    }

    /// Returns the texts of the file that the change quotes.
    pub(super) fn quotes(&self) -> Vec<&str> {
        match self {
            Self::Replace(parts) => parts.iter().map(|part| part.old.as_str()).collect(),
            Self::Patch { hunks, .. } => hunks.iter().flat_map(patch::Hunk::quotes).collect(),
            _ => Vec::new(),
        }
    }
}

/// One replacement of a text by another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replacement {
    pub(super) old: String,
    pub(super) new: String,
    pub(super) all: bool,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Output {
    /// The result as JSON, as the agent sent it.
    pub(super) raw: Value,
    /// The text in the result; `None` if none was found.
    pub(super) text: Option<String>,
    /// For a read: the first line shown, the number of lines shown, and the
    /// number of lines of the file.
    pub(super) shown: Option<(u32, u32, u32)>,
    /// Whether a hook may replace this output.
    pub(super) replaceable: bool,
}

/// The decision of the rules about an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Verdict {
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
