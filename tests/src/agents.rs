//! Real agents, driven by a scripted [`Model`] and with touchmark's hooks as
//! `touchmark hook install` writes them: what they do, a test says in words of
//! no agent.
//!
//! An agent is a file here and a row of [`AGENTS`]. It is fetched from npm, has
//! a home of its own and needs no key, no login and no network.
//!
//! - [`scenarios`]: what is played with each of them.
//! - [`compared`]: what becomes of a user's changes, without touchmark and with
//!   it.
//! - [`cost`]: what the hooks take of its time.
//! - [`matrix`]: what came of it, as the documents show it.

mod claude;
mod codex;
pub mod compared;
pub mod cost;
mod gemini;
pub mod matrix;
mod opencode;
mod qwen;
mod run;
pub mod scenarios;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::model::{Model, Said};
use crate::process::{daemons_below, signal};
use crate::world::{World, binary};
pub use run::Run;

/// All of them, in the order of the documents' table.
pub const AGENTS: &[&Agent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &opencode::AGENT,
    &qwen::AGENT,
];

/// One agent, of one version.
pub struct Agent {
    /// As `touchmark hook install` calls it.
    pub name: &'static str,
    /// As people call it.
    pub title: &'static str,
    /// What is fetched from npm, `name@version`; the agent first.
    pub packages: &'static [&'static str],
    /// Whether any event tells that a call was declined.
    tells_of_declined: bool,
    /// Whether its own tool refuses to edit what has changed since its last
    /// read, whatever has changed.
    own_gate: bool,
    /// Scenarios that cannot be played with it: their names, and why.
    lacks: &'static [(&'static str, &'static str)],
    /// Writes the agent's own settings, before touchmark writes its hooks.
    settle: fn(&Stage),
    /// The program with what it is asked. Its environment is empty but for
    /// [`Stage::dress`].
    command: fn(&Stage, &Ask) -> Command,
    /// The call by which a model does something, or why there is none.
    call: fn(&Stage, &Does) -> Result<Said, &'static str>,
}

impl Agent {
    /// The version that is fetched.
    pub fn version(&self) -> &'static str {
        let package = self.packages[0];
        package.rsplit('@').next().expect("name@version")
    }
}

/// What an agent is asked.
pub struct Ask<'a> {
    /// The user's words.
    pub prompt: &'a str,
    /// Whether they continue the last conversation.
    pub continues: bool,
}

/// What a model does in one step.
#[derive(Clone, Debug)]
pub enum Does {
    /// Reads a file.
    Read(&'static str),
    /// Replaces one line of a file by another.
    Edit(&'static str, &'static str, &'static str),
    /// Writes a whole file.
    Write(&'static str, &'static str),
    /// The same as `Edit`, by a tool that takes a patch.
    Patch(&'static str, &'static str, &'static str),
    /// Runs a command to its end.
    Shell(&'static str),
    /// Runs a command in the background.
    Background(&'static str),
    /// Has a sub-agent do something.
    Delegate(String),
    /// Waits for that sub-agent, of which it was told this. Only where the call
    /// that began it has not waited.
    Await(String),
    /// What the sub-agent says at its end.
    Report(&'static str),
    /// Calls a tool of touchmark's MCP server.
    Mcp(&'static str, Value),
}

/// A patch that replaces one line.
fn patch(path: &str, old: &str, new: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch")
}

/// What differs from an agent as it comes.
#[derive(Clone, Copy, Default)]
pub struct Setting {
    /// There are no hooks of touchmark's.
    pub bare: bool,
    /// touchmark's MCP server is set up.
    pub mcp: bool,
    /// A command that the user has set up to run after each edit.
    pub formatter: Option<&'static str>,
    /// Tools that change something are declined.
    pub declines: bool,
    /// The model is one that is given a patch tool, where the agent has one.
    pub patches: bool,
}

/// A world with one agent in it.
pub struct Stage {
    /// The workspace, the daemon, the agent's home.
    pub world: World,
    /// Which.
    pub agent: &'static Agent,
    /// What is set up.
    pub setting: Setting,
    /// Where the packages are.
    packages: PathBuf,
    url: String,
    model: RefCell<Model>,
}

impl Stage {
    /// An agent with touchmark's hooks, at rest. `packages` is the directory
    /// that its packages were fetched into.
    pub fn new(agent: &'static Agent, packages: &Path, setting: Setting) -> Self {
        let world = World::new();
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(world.workspace())
            .status();
        assert!(made.is_ok_and(|status| status.success()), "git init");
        let model = Model::start(&world.outside().join("model.log"));
        let stage = Self {
            world,
            agent,
            setting,
            packages: packages.to_owned(),
            url: model.url(),
            model: RefCell::new(model),
        };
        (agent.settle)(&stage);
        if !setting.bare {
            stage.touchmark(&["hook", "install", agent.name, "--yes"]);
        }
        stage
    }

    /// The user asks the agent something.
    pub fn ask(&self, prompt: &str) -> Run<'_> {
        Run::new(
            self,
            &Ask {
                prompt,
                continues: false,
            },
        )
    }

    /// The user goes on with the last conversation, in a new process.
    pub fn ask_further(&self, prompt: &str) -> Run<'_> {
        Run::new(
            self,
            &Ask {
                prompt,
                continues: true,
            },
        )
    }

    /// Whether the agent can do something; why not.
    ///
    /// # Errors
    /// Why not.
    pub fn able(&self, does: &Does) -> Result<(), &'static str> {
        (self.agent.call)(self, does).map(drop)
    }

    /// The model's address: `http://127.0.0.1:PORT`.
    fn url(&self) -> &str {
        &self.url
    }

    /// A file below `node_modules` of what was fetched.
    fn package(&self, file: &str) -> PathBuf {
        self.packages.join("node_modules").join(file)
    }

    /// Writes a file of the agent's home, with its directories.
    fn at_home(&self, file: &str, text: &str) {
        let path = self.world.outside().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a setting");
    }

    /// A program with this world's directories and nothing of the machine's
    /// but the path to its programs.
    fn dress(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let machine = std::env::var("PATH").unwrap_or_default();
        let own = binary().parent().expect("a directory").to_owned();
        command
            .env_clear()
            .env("PATH", format!("{}:{machine}", own.display()))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("SHELL", "/bin/bash")
            // What is decided is tested, not how fast it is.
            .env("TOUCHMARK_HOOK_MS", "4000")
            .current_dir(self.world.workspace())
            .stdin(Stdio::null());
        self.world.dress(&mut command);
        command
    }

    /// Runs a command of touchmark's, which must succeed.
    pub fn touchmark(&self, arguments: &[&str]) -> String {
        let done = self.world.run(arguments);
        assert!(done.status.success(), "touchmark {arguments:?}: {done:?}");
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    /// The same, as JSON.
    pub fn told(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let text = self.touchmark(&all);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// What lies in a file of the workspace.
    pub fn text(&self, file: &str) -> String {
        fs::read_to_string(self.world.path(file)).expect("a file")
    }

    /// Who wrote the versions of a file, the newest first, as
    /// [`crate::author`] spells it; what was corrected only as corrected.
    pub fn writers(&self, file: &str) -> Vec<String> {
        let history = self.told(&["history", file]);
        let versions = history["versions"].as_array().expect("versions");
        let is_amended = |clock: &Value| versions.iter().any(|one| one["amends"] == *clock);
        let last = versions.iter().filter(|one| !is_amended(&one["clock"]));
        last.map(|one| crate::author(&one["author"])).collect()
    }

    /// The one session that no other has begun.
    pub fn session(&self) -> String {
        let all = self.sessions();
        let main: Vec<&Value> = all.iter().filter(|one| one["parent"].is_null()).collect();
        assert_eq!(main.len(), 1, "{all:?}");
        crate::text(main[0], "session")
    }

    /// The sessions that there are.
    pub fn sessions(&self) -> Vec<Value> {
        let list = self.told(&["sessions"]);
        list["sessions"].as_array().expect("sessions").clone()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Daemons that hooks started, and what has started them may start more.
        self.world.run(&["stop"]);
        let base = self.world.outside();
        for daemon in daemons_below(base.parent().expect("a world's directory")) {
            if daemon != self.world.pid() {
                signal(daemon, Signal::KILL);
            }
        }
    }
}
