//! Runs the real agents with a scripted [`Model`] and with touchmark's hooks,
//! as `touchmark hook install` writes them. Scenarios are written without
//! reference to any one agent.
//!
//! An agent is a file here, a row of [`AGENTS`], and lines of
//! `tests/agents.pins`. It is fetched from its registry, has its own home
//! directory, and needs no key, no login and no network.
//!
//! - [`pins`]: the versions, and how they are fetched.
//! - [`scenarios`]: what is tested with each agent.
//! - [`compared`]: what happens to a user's changes, without touchmark and with
//!   it.
//! - [`cost`]: how much time the hooks take, paired with none and with `true`.
//! - [`picture`]: Claude Code as its user sees it, for the README.
//! - [`matrix`]: the results, as the documents show them.

mod aider;
mod claude;
mod cline;
mod codex;
pub mod compared;
mod continue_cli;
mod copilot;
pub mod cost;
mod gemini;
pub mod matrix;
mod opencode;
mod pi;
pub mod picture;
mod pins;
mod qwen;
mod run;
pub mod scenarios;
mod vibe;

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

/// All agents, in the order of the documents' table.
pub const AGENTS: &[&Agent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &opencode::AGENT,
    &qwen::AGENT,
    &copilot::AGENT,
    &pi::AGENT,
    &cline::AGENT,
    &vibe::AGENT,
    &continue_cli::AGENT,
    &aider::AGENT,
];

/// How an agent works with touchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By hooks, or by a plug-in in their place.
    Hooks,
    /// By touchmark's MCP server alone.
    Mcp,
    /// As a command of `touchmark run`.
    Run,
}

impl By {
    /// Returns why an agent does not play a scenario; `None` if it does.
    fn lacks(self, scenario: &str) -> Option<&'static str> {
        match self {
            Self::Hooks => None,
            Self::Mcp => (!["MCP", "undo"].contains(&scenario)).then_some("MCP only"),
            Self::Run => (scenario != "undo").then_some("`run` only"),
        }
    }
}

/// One agent, in one version.
pub struct Agent {
    /// Its name in `touchmark hook install`.
    pub name: &'static str,
    /// Its name in prose.
    pub title: &'static str,
    /// How it works with touchmark.
    pub by: By,
    /// The minor version of Python 3 that it needs at least; 0 for any, or if
    /// it needs none.
    python: u32,
    /// Whether an event reports that the user declined a tool call.
    tells_of_declined: bool,
    /// Whether the agent's own edit tool refuses a file that has changed at all
    /// since its last read.
    own_gate: bool,
    /// Whether a setting names a program that runs its shell commands.
    has_prefix: bool,
    /// Scenarios that this agent cannot run: each name, and the reason.
    lacks: &'static [(&'static str, &'static str)],
    /// Writes the agent's own settings. Called before touchmark writes its
    /// hooks.
    settle: fn(&Stage),
    /// Returns the command line for a prompt. Its environment contains only
    /// what [`Stage::dress`] sets.
    command: fn(&Stage, &Ask) -> Command,
    /// Returns the tool call by which a model performs an action, or the reason
    /// why the agent has none.
    call: fn(&Stage, &Does) -> Result<Said, &'static str>,
}

/// A prompt for an agent.
pub struct Ask<'a> {
    /// The text of the prompt.
    pub prompt: &'a str,
    /// Whether the prompt continues the last conversation.
    pub continues: bool,
}

/// An action of the model in one step.
#[derive(Clone, Debug)]
pub enum Does {
    /// Reads a file.
    Read(&'static str),
    /// Replaces a line: path, old line, new line.
    Edit(&'static str, &'static str, &'static str),
    /// Writes a whole file: path, content.
    Write(&'static str, &'static str),
    /// Replaces a line with a tool that takes a patch: path, old line, new
    /// line.
    Patch(&'static str, &'static str, &'static str),
    /// Runs a shell command and waits until it exits.
    Shell(&'static str),
    /// Runs a shell command in the background.
    Background(&'static str),
    /// Starts a sub-agent with this task.
    Delegate(String),
    /// Waits for the sub-agent. The text is the result of the call that started
    /// it. Only for agents whose starting call does not wait.
    Await(String),
    /// The sub-agent's final answer.
    Report(&'static str),
    /// Calls a tool of touchmark's MCP server: name, arguments.
    Mcp(&'static str, Value),
}

/// Returns a patch that replaces one line of a file.
fn patch(path: &str, old: &str, new: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch")
}

/// How a stage differs from an agent's default setup with touchmark's hooks.
#[derive(Clone, Copy, Default)]
pub struct Setting {
    /// touchmark's hooks are not installed.
    pub bare: bool,
    /// touchmark's MCP server is set up.
    pub mcp: bool,
    /// A shell command that the user has set up to run after each edit; `None`
    /// for no command.
    pub formatter: Option<&'static str>,
    /// Tool calls that change something are declined.
    pub declines: bool,
    /// The model is one for which the agent offers a patch tool, if the agent
    /// has one.
    pub patches: bool,
    /// Its shell commands are witnessed: by the prefix of its shell, or else with
    /// the whole agent, as a shim does it.
    pub witness: bool,
}

/// A test world with one agent in it.
pub struct Stage {
    /// The workspace, the daemon and the agent's home directory.
    pub world: World,
    /// The agent.
    pub agent: &'static Agent,
    /// The setup.
    pub setting: Setting,
    /// The directory that the packages were fetched into.
    packages: PathBuf,
    url: String,
    model: RefCell<Model>,
}

impl Stage {
    /// Sets up an agent that is not running yet. `packages` is the directory
    /// that its packages were fetched into.
    pub fn new(agent: &'static Agent, packages: &Path, setting: Setting) -> Self {
        let world = World::new();
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(world.workspace())
            .status();
        assert!(made.is_ok_and(|status| status.success()), "git init");
        let offers_tools = agent.by != By::Run;
        let model = Model::start(&world.outside().join("model.log"), offers_tools);
        let stage = Self {
            world,
            agent,
            setting,
            packages: packages.to_owned(),
            url: model.url(),
            model: RefCell::new(model),
        };
        (agent.settle)(&stage);
        if setting.witness {
            let names = ["setup", "--yes", "--no-mcp", "--witness", "--agent"];
            stage.touchmark(&[&names[..], &[agent.name]].concat());
        } else if !setting.bare && agent.by == By::Hooks {
            stage.touchmark(&["hook", "install", agent.name, "--yes"]);
        }
        stage
    }

    /// Starts the agent with a prompt, in a new conversation.
    pub fn ask(&self, prompt: &str) -> Run<'_> {
        Run::new(
            self,
            &Ask {
                prompt,
                continues: false,
            },
        )
    }

    /// Starts the agent in a new process with a prompt that continues the last
    /// conversation.
    pub fn ask_further(&self, prompt: &str) -> Run<'_> {
        Run::new(
            self,
            &Ask {
                prompt,
                continues: true,
            },
        )
    }

    /// Checks whether the agent can perform an action.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn able(&self, does: &Does) -> Result<(), &'static str> {
        (self.agent.call)(self, does).map(drop)
    }

    /// Returns the model's address: `http://127.0.0.1:PORT`.
    fn url(&self) -> &str {
        &self.url
    }

    /// Returns the path of a file below `node_modules` of the fetched packages.
    fn package(&self, file: &str) -> PathBuf {
        self.packages.join("node_modules").join(file)
    }

    /// Returns the path of a program of the fetched Python packages.
    fn program(&self, name: &str) -> PathBuf {
        self.packages.join("bin").join(name)
    }

    /// Writes a file in the agent's home directory, and creates its parent
    /// directories.
    fn at_home(&self, file: &str, text: &str) {
        let path = self.world.outside().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a setting");
    }

    /// Returns a command with this world's directories in its environment. Of
    /// the machine's environment it has only `PATH`.
    fn dress(&self, program: impl AsRef<Path>) -> Command {
        let program = program.as_ref();
        let own = binary().with_file_name("touchmark-hook");
        let mut command = match self.setting.witness && !self.agent.has_prefix {
            true => {
                let mut command = Command::new(own);
                command.args([self.agent.name, "run"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        let machine = std::env::var("PATH").unwrap_or_default();
        let own = binary().parent().expect("a directory").to_owned();
        command
            .env_clear()
            .env("PATH", format!("{}:{machine}", own.display()))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("SHELL", "/bin/bash")
            // The tests check what is decided, not how fast.
            .env("TOUCHMARK_HOOK_MS", "4000")
            .current_dir(self.world.workspace())
            .stdin(Stdio::null());
        self.world.dress(&mut command);
        command
    }

    /// Runs a `touchmark` command, which must succeed, and returns its output.
    pub fn touchmark(&self, arguments: &[&str]) -> String {
        let done = self.world.run(arguments);
        assert!(done.status.success(), "touchmark {arguments:?}: {done:?}");
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    /// Runs a `touchmark` command with `--json`, and returns its output as
    /// JSON.
    pub fn told(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let text = self.touchmark(&all);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// Returns the content of a file in the workspace.
    pub fn text(&self, file: &str) -> String {
        fs::read_to_string(self.world.path(file)).expect("a file")
    }

    /// Returns the authors of a file's versions, the newest first, as
    /// [`crate::author`] writes them. A corrected version appears only with its
    /// corrected author.
    pub fn writers(&self, file: &str) -> Vec<String> {
        let history = self.told(&["history", file]);
        let versions = history["versions"].as_array().expect("versions");
        let is_amended = |clock: &Value| versions.iter().any(|one| one["amends"] == *clock);
        let last = versions.iter().filter(|one| !is_amended(&one["clock"]));
        last.map(|one| crate::author(&one["author"])).collect()
    }

    /// Returns the id of the only session without a parent.
    pub fn session(&self) -> String {
        let all = self.sessions();
        let main: Vec<&Value> = all.iter().filter(|one| one["parent"].is_null()).collect();
        assert_eq!(main.len(), 1, "{all:?}");
        crate::text(main[0], "session")
    }

    /// Returns all sessions.
    pub fn sessions(&self) -> Vec<Value> {
        let list = self.told(&["sessions"]);
        list["sessions"].as_array().expect("sessions").clone()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Hooks may have started daemons, and remaining agent processes may
        // start more.
        self.world.run(&["stop"]);
        let base = self.world.outside();
        for daemon in daemons_below(base.parent().expect("a world's directory")) {
            if daemon != self.world.pid() {
                signal(daemon, Signal::KILL);
            }
        }
    }
}
