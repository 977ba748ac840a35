//! An agent as its hooks show it: events in the documented formats, sent to the
//! real `touchmark hook`. The answers are checked against the agent's schema.
//!
//! - [`agent`]: an agent as a separate process.
//! - [`voice`]: the format of each agent's events.
//! - [`schema`]: the answers that each agent accepts.
//! - [`play`]: a whole session, the same for all agents.

pub mod agent;
pub mod play;
pub mod schema;
pub mod voice;

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::world::{World, binary, finish};
pub use voice::Voice;

/// The time budget of hooks, in milliseconds. Functions are tested, not delays,
/// so it is long enough for a busy machine.
const PATIENCE_MS: &str = "30000";

/// An agent's session in a world.
pub struct Talk<'a> {
    /// The world with the workspace and the daemon.
    pub world: &'a World,
    /// The agent and its session.
    pub voice: Voice,
    calls: u32,
}

/// A hook's output, as the agent interprets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// No effect.
    Nothing,
    /// The tool must not run; with the reason.
    Denied(String),
    /// The agent's user is asked whether the tool may run; with the reason.
    Asked(String),
    /// A text for the model.
    Told(String),
    /// A replacement for the tool's output.
    Replaced(Value),
}

impl Heard {
    /// Returns the reason of a denial. Panics if the tool was not denied.
    pub fn denied(self) -> String {
        match self {
            Self::Denied(reason) => reason,
            other => panic!("not denied: {other:?}"),
        }
    }

    /// Returns the text of a notice; empty if there was nothing.
    pub fn text(self) -> String {
        match self {
            Self::Nothing => String::new(),
            heard => heard.told(),
        }
    }

    /// Returns the text for the model. Panics if there is none.
    pub fn told(self) -> String {
        match self {
            Self::Told(text) => text,
            other => panic!("nothing told: {other:?}"),
        }
    }

    /// Panics if the hook had any effect.
    pub fn nothing(self) {
        assert_eq!(self, Self::Nothing);
    }
}

/// Runs a hook with any bytes on its input, as an agent runs it. If `patient`,
/// with a longer time budget.
pub fn run(world: &World, agent: &str, bytes: &[u8], patient: bool) -> Output {
    let mut command = Command::new(binary());
    // A directory that is in no workspace, for events that name none. The
    // directories of a world are in this repository.
    command.args(["hook", voice::hook(agent)]).current_dir("/");
    world.dress(&mut command);
    if patient {
        command.env("TOUCHMARK_HOOK_MS", PATIENCE_MS);
    }
    feed(command, bytes)
}

/// Runs a command with these bytes on its standard input.
pub fn feed(mut command: Command, bytes: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a hook");
    let mut stdin = child.stdin.take().expect("its input");
    let bytes = bytes.to_vec();
    // On another thread, since a hook that gives up does not read its whole
    // input.
    let writer = std::thread::spawn(move || {
        let _given_up = stdin.write_all(&bytes);
    });
    let output = finish(child, "touchmark hook");
    writer.join().expect("the writer");
    output
}

/// Returns a hook's output. Panics unless it is one JSON object and the exit
/// code is 0.
pub fn printed(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{text:?}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

impl<'a> Talk<'a> {
    /// Returns an agent with a new session.
    pub fn new(world: &'a World, agent: &'static str, session: &str) -> Self {
        Self {
            world,
            voice: Voice::new(agent, session, world.workspace()),
            calls: 0,
        }
    }

    /// Sends one event to the real hook.
    pub fn say(&self, event: &Value) -> Heard {
        let agent = self.voice.agent;
        let output = run(self.world, agent, event.to_string().as_bytes(), true);
        // Where the agent's answers have no field for a reason, the reason is
        // on standard error.
        if !self.voice.has("denied") && output.status.code() == Some(2) {
            return Heard::Denied(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let printed = printed(&output);
        schema::check(agent, voice::event_name(agent, event), &printed);
        heard(agent, &printed)
    }

    /// Returns an id for the next tool call.
    pub fn call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    /// Starts the session.
    pub fn start(&self) -> Heard {
        match self.voice.has("start") {
            true => self.say(&self.voice.start("startup")),
            false => Heard::Nothing,
        }
    }

    /// Sends a prompt of the user, if the agent has an event for it.
    pub fn prompt(&self, id: &str, text: &str) -> Heard {
        match self.voice.has("prompt") {
            true => self.say(&self.voice.prompt(id, text)),
            false => Heard::Nothing,
        }
    }

    /// Reads a file, by a tool or a command, and runs `between` while the tool
    /// runs. Returns the answer after the read.
    pub fn read_while(&mut self, path: &str, between: impl FnOnce()) -> Heard {
        let call = self.call();
        let text = fs::read(self.world.path(path)).expect("a file to read");
        let text = String::from_utf8_lossy(&text);
        self.say(&self.voice.before_read(&call, path)).nothing();
        between();
        self.say(&self.voice.after_read(&call, path, &text))
    }

    /// Reads a file, with nothing in between.
    pub fn read(&mut self, path: &str) -> Heard {
        self.read_while(path, || ())
    }

    /// Sends the event before a tool replaces a text. Returns the call's id and
    /// the answer.
    pub fn before_edit(&mut self, path: &str, old: &str, new: &str) -> (String, Heard) {
        let call = self.call();
        let heard = self.say(&self.voice.before_edit(&call, path, old, new));
        (call, heard)
    }

    /// Sends the event before a tool writes a whole file. Returns the call's id
    /// and the answer.
    pub fn before_write(&mut self, path: &str, text: &str) -> (String, Heard) {
        let call = self.call();
        let heard = self.say(&self.voice.before_write(&call, path, text));
        (call, heard)
    }

    /// Replaces a text in a file. The edit must not be denied.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) -> Heard {
        let (call, heard) = self.before_edit(path, old, new);
        heard.nothing();
        let file = self.world.path(path);
        let text = fs::read_to_string(&file).expect("a file to edit");
        fs::write(&file, text.replacen(old, new, 1)).expect("an edit");
        self.say(&self.voice.after_edit(&call, path, old, new))
    }

    /// Runs a command in the workspace.
    pub fn shell(&mut self, command: &str) -> Heard {
        let call = self.call();
        self.say(&self.voice.before_shell(&call, command)).nothing();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.world.workspace())
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        self.say(&self.voice.after_shell(&call, command, &text))
    }
}

/// Returns the meaning of an agent's answer.
pub fn heard(agent: &str, printed: &Value) -> Heard {
    let said = |what: &str| printed.pointer(voice::of(agent)[what].as_str()?);
    let text = |what: &str| said(what)?.as_str().map(str::to_owned);
    let denied = text("denied").or_else(|| text("asked"));
    let (told, replaced) = (text("told"), said("replaced").cloned());
    let asks = ["/hookSpecificOutput/permissionDecision", "/permission"]
        .iter()
        .any(|decision| printed.pointer(decision).is_some_and(|said| said == "ask"));
    match (denied, told, replaced) {
        (None, None, None) => {
            // What the agent's user is shown has no effect on the agent.
            let mut printed = printed.clone();
            let shown = printed.as_object_mut().expect("an object");
            shown.remove("systemMessage");
            assert_eq!(printed, json!({}));
            Heard::Nothing
        }
        (Some(text), None, None) if asks => Heard::Asked(text),
        (Some(reason), None, None) => Heard::Denied(reason),
        (None, Some(text), None) => Heard::Told(text),
        (None, None, Some(output)) => Heard::Replaced(output),
        _ => panic!("too much at once: {printed}"),
    }
}
