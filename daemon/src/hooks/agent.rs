//! An agent is a row of [`rows`]: how it names its events, its tools and their
//! fields, and what it takes for an answer. [`read`] reads any agent's event by
//! its row. So a new agent is a row here, one in `cli/src/settings/rows.rs`, and
//! a voice in `tests/voices`.

mod answers;
mod read;
mod rows;

pub(super) use answers::Answers;
use rows::AGENTS;

use std::path::PathBuf;

use serde_json::Value;
use touchmark_proto::hooks::HookPrinted;

use super::{Happened, Verdict};

/// How one agent speaks.
#[derive(Debug)]
pub(crate) struct Agent {
    /// As in `touchmark hook NAME` and `hooks.gates`.
    pub(crate) name: &'static str,
    /// As its sessions name their program.
    program: &'static str,
    /// Of the models that it uses.
    provider: &'static str,
    events: &'static [Event],
    /// Further events that its documents name, and that say nothing here. Any
    /// other is not understood.
    ignored: &'static str,
    fields: Fields,
    tools: &'static [(&'static str, Does)],
    /// Further tools of its own, which do nothing that concerns files. Tools of
    /// MCP servers are in no table.
    other_tools: &'static str,
    arguments: Arguments,
    answers: Answers,
    /// Agents that run this one's hook files beside their own.
    also: &'static [&'static str],
    /// Whether an event is this agent's that came by such a file.
    is_own: fn(&Value) -> bool,
    /// A field without which what an answer tells does not reach the model.
    told_with: Option<&'static str>,
    /// A tool's output is a text that holds JSON.
    output_in_text: bool,
    /// A hook can have the agent ask its user.
    pub(crate) asks: bool,
    /// A hook may put another output in the place of a tool's.
    replaces: bool,
}

/// One event.
#[derive(Clone, Copy, Debug)]
struct Event {
    name: &'static str,
    is: Is,
    /// Its answer can carry a text for the model.
    tells: bool,
    /// The tool, where the event's name says it.
    tool: Option<&'static str>,
}

/// An event after which the model may be told something.
const fn tells(name: &'static str, is: Is) -> Event {
    Event {
        name,
        is,
        tells: true,
        tool: None,
    }
}

/// An event after which it may not.
const fn mute(name: &'static str, is: Is) -> Event {
    Event {
        name,
        is,
        tells: false,
        tool: None,
    }
}

impl Event {
    /// That of one tool.
    const fn of(self, tool: &'static str) -> Self {
        Self {
            tool: Some(tool),
            ..self
        }
    }
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Start,
    End,
    Prompt,
    Before,
    After,
    /// After a tool, whether it failed or not: its output says so.
    AfterOrFailed,
    Failed,
    Declined,
    BatchEnd,
    Compacted,
    /// The same, where only what the user asked for is one.
    CompactedByHand,
    ChildStart,
    ChildEnd,
    Stop,
    Interrupted,
    ModelUsed,
    /// A file's content goes to the model.
    Attached,
}

/// Where an event says what: the first of these fields that is there counts.
#[derive(Clone, Copy, Debug)]
struct Fields {
    event: Names,
    session: Names,
    /// The sub-agent whose event it is.
    child: Names,
    /// The session that started this one.
    parent: Names,
    cwd: Names,
    /// Its first element is the directory where `cwd` is not said.
    roots: Names,
    version: Names,
    model: Names,
    mode: Names,
    prompt: Names,
    /// The name of the prompt, and so of the model's answers to it.
    turn: Names,
    tool: Names,
    call: Names,
    arguments: Names,
    output: Names,
    error: Names,
}

/// Names of a field, the likeliest first.
type Names = &'static [&'static str];

/// As Claude Code has them, and with it most, in one spelling or the other.
const FIELDS: Fields = Fields {
    event: &["hook_event_name", "hookEventName"],
    session: &["session_id", "sessionId"],
    child: &["agent_id", "agentId"],
    parent: &[],
    cwd: &["cwd"],
    roots: &[],
    version: &[],
    model: &["model"],
    mode: &["permission_mode", "permissionMode"],
    prompt: &["prompt"],
    turn: &["prompt_id", "turn_id", "promptId"],
    tool: &["tool_name", "toolName"],
    call: &["tool_use_id", "toolUseId"],
    arguments: &["tool_input", "toolInput"],
    output: &["tool_response", "toolResponse"],
    error: &["error"],
};

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// Shows lines of a file: `offset` counts from `first`, and without a
    /// limit so many are shown.
    Read {
        first: u32,
        lines: Option<u32>,
    },
    /// Puts a text in a file's place.
    Whole,
    /// Replaces one text in a file.
    Replace,
    /// Replaces several.
    Replaces,
    /// Changes a file in a way that nobody can say.
    Rewrite,
    Delete,
    /// Applies a patch.
    Patch,
    Shell,
    /// The same, where a command may be a patch.
    ShellOrPatch,
}

/// How the tools' arguments are called.
#[derive(Clone, Copy, Debug)]
struct Arguments {
    path: Names,
    offset: Names,
    limit: Names,
    /// The first line and the last, from 1.
    from: Names,
    to: Names,
    /// Both in a list.
    range: Names,
    content: Names,
    old: Names,
    new: Names,
    all: Names,
    edits: Names,
    patch: Names,
    command: Names,
    /// Where a command runs.
    directory: Names,
}

/// As most have them.
const ARGUMENTS: Arguments = Arguments {
    path: &["file_path", "notebook_path", "path"],
    offset: &["offset"],
    limit: &["limit"],
    from: &["start_line"],
    to: &["end_line"],
    range: &[],
    content: &["content"],
    old: &["old_string"],
    new: &["new_string"],
    all: &["replace_all"],
    edits: &["edits"],
    patch: &["command", "input", "patch"],
    command: &["command"],
    directory: &["dir_path", "directory", "workdir"],
};

/// What most rows say alike.
const BASE: Agent = Agent {
    name: "",
    program: "",
    provider: "",
    events: &[],
    ignored: "",
    fields: FIELDS,
    tools: &[],
    other_tools: "",
    arguments: ARGUMENTS,
    answers: Answers::Specific,
    also: &[],
    is_own: |_| false,
    told_with: None,
    output_in_text: false,
    asks: false,
    replaces: false,
};

/// What became of reading an event.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What happened; `None` for what says nothing here.
    pub(super) happened: Option<Happened>,
    /// What in it is not understood.
    pub(super) odd: Option<Odd>,
}

/// What is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Odd {
    /// It names no event, or is no JSON object.
    NoEvent,
    /// An event of no known name.
    Event(String),
    /// A tool of no known name.
    Tool(String),
    /// An event without a field that it has to have, or with one of another
    /// type.
    Field(&'static str, &'static str),
}

impl Agent {
    /// The agent of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        AGENTS.iter().find(|agent| agent.name == name)
    }

    /// All names, for people.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
        names.join(", ")
    }

    /// Whose event it is that came by this agent's hook.
    pub(crate) fn speaker(&'static self, input: &Value) -> &'static Self {
        let also = self.also.iter().filter_map(|name| Self::named(name));
        also.into_iter()
            .find(|agent| (agent.is_own)(input))
            .unwrap_or(self)
    }

    /// Where the workspace of an event is looked for: at the file that it is
    /// about, or where the agent works.
    pub(super) fn place(&self, input: &Value) -> Option<PathBuf> {
        read::place(self, input)
    }

    /// Reads an event.
    pub(super) fn read(&self, input: &Value) -> Heard {
        read::read(self, input)
    }

    /// What says a verdict.
    pub(super) fn print(&self, event: &str, verdict: Verdict) -> HookPrinted {
        self.answers.print(event, verdict)
    }

    /// Whether an event says that all tools of a turn have run.
    fn ends_batches(&self) -> bool {
        self.events.iter().any(|event| event.is == Is::BatchEnd)
    }
}
