//! An agent is a row of [`rows`]: the names of its events, its tools and their
//! fields, the answers it accepts, and its [`settings`], to which the command
//! adds hooks. [`read`] reads any agent's event by its row. A new agent is a
//! file in `rows`, and recorded events in `tests/voices`.

mod answers;
mod read;
mod rows;
mod settings;

pub(super) use answers::Answers;
use rows::AGENTS;
use settings::SETTINGS;
pub use settings::{
    Addition, EntryFormat, Handler, Servers, Settings, ShellPrefix, Switch, UserFile, WORKSPACE,
};

use std::path::PathBuf;

use serde_json::Value;
use touchmark_proto::SessionId;
use touchmark_proto::hooks::HookPrinted;

use crate::off::processes::EDITORS;

use super::happened::{Happened, Verdict};

/// The format of one agent's events, answers and settings.
#[derive(Debug)]
pub struct Agent {
    /// The name in `touchmark hook NAME` and in `hooks.gates`.
    pub name: &'static str,
    /// The program's name in its sessions.
    program: &'static str,
    /// The provider of the models that it uses.
    provider: &'static str,
    /// What of it no test has run as the real program, for people; `None` if
    /// all of it is run (`tests/src/agents`).
    pub untried: Option<&'static str>,
    /// The settings to which hooks are added.
    pub settings: Settings,
    /// Its events: first those for which it gets hooks, in the order in which
    /// its settings list them.
    events: &'static [Event],
    /// The names of other documented events, which have no effect here,
    /// separated by blanks. An event that is in neither list counts as not
    /// understood.
    ignored: &'static str,
    fields: Fields,
    /// The event that the agent sends without its name; `None` if all events
    /// have one.
    unnamed: Option<&'static str>,
    tools: &'static [(&'static str, Does)],
    /// The names of its other tools, which do nothing that concerns files,
    /// separated by blanks. Tools of MCP servers are in no list.
    other_tools: &'static str,
    arguments: Arguments,
    answers: Answers,
    /// Other agents that also run this agent's hook files.
    also: &'static [&'static str],
    /// Whether an event that arrived through another agent's hook file is this
    /// agent's.
    is_own: fn(&Value) -> bool,
    /// An event must have one of these fields for the answer's text to reach
    /// the model. With none given, no field is needed.
    told_with: Names,
    /// Whether a tool's output is a text that contains JSON.
    output_in_text: bool,
    /// Whether a hook can make the agent ask its user.
    pub(crate) asks: bool,
    /// Whether `@path` in a prompt puts the file's text into the context,
    /// without an event of its own.
    pub(crate) attaches: bool,
    /// Whether a hook can replace a tool's output.
    replaces: bool,
    /// Whether its plug-in runs in a process directly below the agent's.
    pub(super) apart: bool,
    /// Whether it was observed that each of its commands leads a session of the
    /// operating system.
    pub(super) leads_sessions: bool,
    /// Whether it shows its user the text `systemMessage` of an answer.
    pub(super) shows: bool,
    /// Whether it does not report the end of a command that it has left in the
    /// background.
    pub(super) ends_unreported: bool,
}

/// One event of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The name in the agent's settings. An event may arrive with its name in
    /// another case, and with underscores.
    pub name: &'static str,
    /// The tools for which the event is requested; `None` for all tools.
    pub matcher: Option<&'static str>,
    /// A timeout other than the agent's usual one, in the agent's unit.
    pub timeout: Option<u64>,
    /// Whether setup adds a hook for it.
    is_asked: bool,
    is: Is,
    /// Whether its answer can contain a text for the model.
    tells: bool,
    /// The tool, if the event's name implies it.
    tool: Option<&'static str>,
}

/// Returns an event whose answer can contain a text for the model.
const fn tells(name: &'static str, is: Is) -> Event {
    Event {
        tells: true,
        ..mute(name, is)
    }
}

/// Returns an event whose answer cannot contain a text for the model.
const fn mute(name: &'static str, is: Is) -> Event {
    Event {
        name,
        matcher: None,
        timeout: None,
        is_asked: true,
        is,
        tells: false,
        tool: None,
    }
}

impl Event {
    /// Returns this event for one tool.
    const fn of(self, tool: &'static str) -> Self {
        Self {
            tool: Some(tool),
            ..self
        }
    }

    /// Returns this event, requested for these tools alone.
    const fn only(self, tools: &'static str) -> Self {
        Self {
            matcher: Some(tools),
            ..self
        }
    }

    /// Returns this event with its own timeout.
    const fn within(self, timeout: u64) -> Self {
        Self {
            timeout: Some(timeout),
            ..self
        }
    }

    /// Returns this event, for which setup adds no hook.
    const fn unasked(self) -> Self {
        Self {
            is_asked: false,
            ..self
        }
    }
}

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Start,
    End,
    Prompt,
    Before,
    After,
    /// A tool has ended, in success or failure; its output shows which.
    AfterOrFailed,
    Failed,
    Declined,
    BatchEnd,
    Compacted,
    /// The context was compacted, but only if the user requested it.
    CompactedByHand,
    ChildStart,
    ChildEnd,
    Stop,
    Interrupted,
    ModelUsed,
    /// A file's content is sent to the model.
    Attached,
}

/// The names of an event's fields. Of several names, the first that the event
/// has counts.
#[derive(Clone, Copy, Debug)]
struct Fields {
    event: Names,
    session: Names,
    /// The sub-agent to which the event belongs.
    child: Names,
    /// The session that started this one.
    parent: Names,
    cwd: Names,
    /// A list of directories; the first one is used if `cwd` is missing.
    roots: Names,
    version: Names,
    model: Names,
    mode: Names,
    prompt: Names,
    /// The id of the prompt, and so of the model's answers to it.
    turn: Names,
    tool: Names,
    call: Names,
    arguments: Names,
    output: Names,
    error: Names,
}

/// Names of a field, the most likely one first.
type Names = &'static [&'static str];

/// The field names of Claude Code, which most agents share, in both spellings.
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
    /// Shows lines of a file. `offset` is counted from `first`; without a
    /// limit, `lines` lines are shown, or all if that is `None`.
    Read {
        first: u32,
        lines: Option<u32>,
    },
    /// Replaces the content of a file.
    Whole,
    /// Replaces one text in a file.
    Replace,
    /// Replaces several texts in files.
    Replaces,
    /// Changes a file; the result is not known in advance.
    Rewrite,
    Delete,
    /// Applies a patch to files.
    Patch,
    Shell,
    /// Runs a command, which may be a patch.
    ShellOrPatch,
}

/// The names of the tools' arguments.
#[derive(Clone, Copy, Debug)]
struct Arguments {
    path: Names,
    offset: Names,
    limit: Names,
    /// The first line, from 1.
    from: Names,
    /// The last line, from 1.
    to: Names,
    /// The first and the last line, as a list.
    range: Names,
    content: Names,
    old: Names,
    new: Names,
    all: Names,
    edits: Names,
    patch: Names,
    command: Names,
    /// The directory in which a command runs.
    directory: Names,
}

/// The argument names that most agents share.
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

/// Marks a row that only documents support.
const NOT_RUN: &str = "from documents, not run";

/// The defaults that most rows share.
const BASE: Agent = Agent {
    name: "",
    program: "",
    provider: "",
    untried: Some(NOT_RUN),
    settings: SETTINGS,
    events: &[],
    ignored: "",
    fields: FIELDS,
    unnamed: None,
    tools: &[],
    other_tools: "",
    arguments: ARGUMENTS,
    answers: Answers::Specific,
    also: &[],
    is_own: |_| false,
    told_with: &[],
    output_in_text: false,
    asks: false,
    attaches: false,
    replaces: false,
    apart: false,
    leads_sessions: false,
    shows: false,
    ends_unreported: false,
};

/// The result of reading an event.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The event; `None` if it has no effect here.
    pub(super) happened: Option<Happened>,
    /// What was not understood in it; `None` if all was.
    pub(super) odd: Option<Odd>,
    /// Whether it is about a tool of the agent's table, and was understood.
    pub(super) knows_tool: bool,
}

/// Something in an event that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Odd {
    /// The input names no event, or is no JSON object.
    NoEvent,
    /// The event's name is not known.
    Event(String),
    /// The tool's name is not known.
    Tool(String),
    /// An event or tool lacks a required field, or the field has another type:
    /// the name of the event or tool, and of the field.
    Field(&'static str, &'static str),
}

impl Agent {
    /// Returns the agent of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|agent| agent.name == name)
    }

    /// Returns the agent of the program with this name in sessions.
    pub(crate) fn of_program(program: &str) -> Option<&'static Self> {
        Self::all().find(|agent| agent.program == program)
    }

    /// Returns whether it has an event for each prompt.
    pub(crate) fn reports_prompts(&self) -> bool {
        self.events.iter().any(|event| event.is == Is::Prompt)
    }

    /// Returns whether an answer to a prompt can contain a text for the model.
    pub(crate) fn tells_prompts(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|event| event.is == Is::Prompt && event.tells)
    }

    /// Returns whether an answer to any event can contain a text for the model.
    pub(crate) fn tells(&self) -> bool {
        self.events.iter().any(|event| event.tells)
    }

    /// Returns all agents, in the order of lists.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        AGENTS.into_iter()
    }

    /// Returns the names of all agents' programs.
    pub fn programs() -> Vec<&'static str> {
        Self::all()
            .flat_map(|agent| agent.settings.programs)
            .copied()
            .collect()
    }

    /// Returns the names of its programs that are no editors.
    pub fn terminal_programs(&self) -> impl Iterator<Item = &'static str> {
        let programs = self.settings.programs.iter().copied();
        programs.filter(|name| !EDITORS.contains(name))
    }

    /// Returns the events for which hooks are added to its settings; none if a
    /// plug-in sends them.
    pub fn hooks(&self) -> impl Iterator<Item = &'static Event> {
        let events = match self.settings.adds {
            Addition::Hooks(_) => self.events,
            Addition::File(_) => &[],
        };
        events.iter().filter(|event| event.is_asked)
    }

    /// Returns the name of an event without a tool, by which a hook can be
    /// tested.
    pub fn plain_event(&self) -> &'static str {
        let plain = |event: &&Event| matches!(event.is, Is::Start | Is::Stop);
        self.events
            .iter()
            .find(plain)
            .map_or("", |event| event.name)
    }

    /// Returns all agents' names, for people.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = Self::all().map(|agent| agent.name).collect();
        names.join(", ")
    }

    /// Returns the agent to which an event belongs that arrived through this
    /// agent's hook.
    pub(crate) fn speaker(&'static self, input: &Value) -> &'static Self {
        let also = self.also.iter().filter_map(|name| Self::named(name));
        also.into_iter()
            .find(|agent| (agent.is_own)(input))
            .unwrap_or(self)
    }

    /// Returns where to look for the workspace of an event: at the file that it
    /// names, or in the agent's working directory.
    pub(super) fn place(&self, input: &Value) -> Option<PathBuf> {
        read::place(self, input)
    }

    /// Returns the session that an event names.
    pub(super) fn session(&self, input: &Value) -> Option<SessionId> {
        Some(read::sessions(&self.fields, input).ok()?.0)
    }

    /// Translates an event of this agent from its JSON.
    pub(super) fn read(&self, input: &Value) -> Heard {
        read::read(self, input)
    }

    /// Returns what the hook must print to express a verdict.
    /// `shown` is a text for its user.
    pub(super) fn print(
        &self,
        event: &str,
        verdict: Verdict,
        shown: Option<String>,
    ) -> HookPrinted {
        let shown = shown.filter(|_| self.shows);
        self.answers.print(event, verdict, shown)
    }

    /// Returns whether one of the agent's events reports that all tools of a
    /// turn have run.
    fn ends_batches(&self) -> bool {
        self.events.iter().any(|event| event.is == Is::BatchEnd)
    }
}
