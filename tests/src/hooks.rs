//! An agent as its hooks show it: events of the documented shapes, given to
//! the real `touchmark hook`, its answers checked against the agent's schema.
//!
//! - [`agent`]: an agent as a process of its own.
//! - [`voice`]: how each agent spells its events.
//! - [`schema`]: what each agent takes for an answer.
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

/// Functions are tested, not delays: a busy machine must not decide.
const PATIENCE_MS: &str = "30000";

/// An agent at work in a world.
pub struct Talk<'a> {
    /// Where.
    pub world: &'a World,
    /// Which agent, in which session.
    pub voice: Voice,
    calls: u32,
}

/// What a hook printed, as the agent understands it.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// The tool must not run.
    Denied(String),
    /// The agent's user is asked whether it runs.
    Asked(String),
    /// A text for the model.
    Told(String),
    /// Another output in the place of the tool's.
    Replaced(Value),
}

impl Heard {
    /// The reason of a denial; it must be one.
    pub fn denied(self) -> String {
        match self {
            Self::Denied(reason) => reason,
            other => panic!("not denied: {other:?}"),
        }
    }

    /// The text told; there must be one.
    pub fn told(self) -> String {
        match self {
            Self::Told(text) => text,
            other => panic!("nothing told: {other:?}"),
        }
    }

    /// Nothing must have been said.
    pub fn nothing(self) {
        assert_eq!(self, Self::Nothing);
    }
}

/// Runs a hook with any bytes, as an agent runs it, with the usual patience
/// or a longer one.
pub fn run(world: &World, agent: &str, bytes: &[u8], patient: bool) -> Output {
    let mut command = Command::new(binary());
    command
        .args(["hook", voice::hook(agent)])
        .current_dir(world.outside());
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
    // Aside: one that gives up does not read to the end.
    let writer = std::thread::spawn(move || {
        let _given_up = stdin.write_all(&bytes);
    });
    let output = finish(child, "touchmark hook");
    writer.join().expect("the writer");
    output
}

/// What a hook printed; it must be one JSON object, and the exit code 0.
pub fn printed(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "{text:?}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

impl<'a> Talk<'a> {
    /// An agent that begins a session.
    pub fn new(world: &'a World, agent: &'static str, session: &str) -> Self {
        Self {
            world,
            voice: Voice::new(agent, session, world.workspace()),
            calls: 0,
        }
    }

    /// Gives one event to the real hook.
    pub fn say(&self, event: &Value) -> Heard {
        let agent = self.voice.agent;
        let output = run(self.world, agent, event.to_string().as_bytes(), true);
        // Where the answer has no place for a reason, it is on standard error.
        if !self.voice.has("denied") && output.status.code() == Some(2) {
            return Heard::Denied(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let printed = printed(&output);
        schema::check(agent, voice::event_name(agent, event), &printed);
        heard(agent, &printed)
    }

    /// A name for the next tool call.
    pub fn call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    /// A session begins.
    pub fn start(&self) -> Heard {
        match self.voice.has("start") {
            true => self.say(&self.voice.start("startup")),
            false => Heard::Nothing,
        }
    }

    /// The user says something.
    pub fn prompt(&self, id: &str, text: &str) -> Heard {
        self.say(&self.voice.prompt(id, text))
    }

    /// The agent reads a file, by its tool or by a command; what is heard
    /// afterwards. `between` happens while the tool runs.
    pub fn read_while(&mut self, path: &str, between: impl FnOnce()) -> Heard {
        let call = self.call();
        let text = fs::read_to_string(self.world.path(path)).expect("a file to read");
        self.say(&self.voice.before_read(&call, path)).nothing();
        between();
        self.say(&self.voice.after_read(&call, path, &text))
    }

    /// The same without anything in between.
    pub fn read(&mut self, path: &str) -> Heard {
        self.read_while(path, || ())
    }

    /// The agent is about to replace a text.
    pub fn before_edit(&mut self, path: &str, old: &str, new: &str) -> (String, Heard) {
        let call = self.call();
        let heard = self.say(&self.voice.before_edit(&call, path, old, new));
        (call, heard)
    }

    /// The agent is about to write a whole file.
    pub fn before_write(&mut self, path: &str, text: &str) -> (String, Heard) {
        let call = self.call();
        let heard = self.say(&self.voice.before_write(&call, path, text));
        (call, heard)
    }

    /// The agent replaces a text, and nothing stands in its way.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) -> Heard {
        let (call, heard) = self.before_edit(path, old, new);
        heard.nothing();
        let file = self.world.path(path);
        let text = fs::read_to_string(&file).expect("a file to edit");
        fs::write(&file, text.replacen(old, new, 1)).expect("an edit");
        self.say(&self.voice.after_edit(&call, path, old, new))
    }

    /// The agent runs a command in the workspace.
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

/// What an answer means.
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
            assert_eq!(*printed, json!({}));
            Heard::Nothing
        }
        (Some(text), None, None) if asks => Heard::Asked(text),
        (Some(reason), None, None) => Heard::Denied(reason),
        (None, Some(text), None) => Heard::Told(text),
        (None, None, Some(output)) => Heard::Replaced(output),
        _ => panic!("too much at once: {printed}"),
    }
}
