//! The means of the authors: a workspace with a repository and a daemon, tools,
//! commands with their hooks, saves, git. Nothing here waits for a time; after
//! each step outside the daemon there is a fence.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::step::{Save, Tool, Who};
use crate::hooks::Voice;
use crate::wire::Answer;
use crate::{Client, World, children, sha256, user};

/// A workspace and its authors.
pub struct Stage {
    /// The world.
    pub world: World,
    /// The connection; `None` while no daemon runs.
    client: Option<Client>,
    calls: u32,
    /// The seconds in which commands of agents ran.
    pub windows: Vec<u64>,
    /// How much of the daemon's log was printed, in bytes.
    traced: usize,
}

/// What a program did.
pub struct Ran {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Returns the wall clock's second.
pub fn second() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Returns whether the daemon's decisions are printed: `TOUCHMARK_TRACE` is set.
fn is_traced() -> bool {
    std::env::var_os("TOUCHMARK_TRACE").is_some()
}

impl Stage {
    /// Prints what the daemon has logged in a step, if that is asked for.
    pub fn trace(&mut self, step: &str) {
        if !is_traced() {
            return;
        }
        let log = self.world.said();
        println!("{step}\n{}", log.get(self.traced..).unwrap_or_default());
        self.traced = log.len();
    }

    /// Creates a workspace with these files, in a commit, and a daemon. Agent A
    /// has read the files, as far as `tracked`.
    pub fn new(files: &[(String, String)], prepare: &str, tracked: bool) -> Self {
        let mut world = World::asleep();
        // What the gate refuses is tested elsewhere.
        world.configure("[hooks]\ngate = \"off\"\n");
        for (path, text) in files {
            world.file(path, text);
        }
        let mut stage = Self {
            world: {
                world.set_env("TOUCHMARK_HOOK_MS", "30000");
                if is_traced() {
                    world.set_env("TOUCHMARK_LOG", "touchmark_daemon=debug");
                }
                world
            },
            client: None,
            calls: 0,
            windows: Vec::new(),
            traced: 0,
        };
        stage.sh(prepare);
        stage.start();
        for who in [Who::A, Who::B] {
            let voice = stage.voice(who);
            stage.hook(&voice.start("startup"));
        }
        if tracked {
            let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
            for path in paths {
                stage.read(Who::A, path);
            }
        }
        stage
    }

    /// Returns the workspace.
    pub fn root(&self) -> &Path {
        self.world.workspace()
    }

    /// Starts the daemon.
    pub fn start(&mut self) {
        self.world.start();
        self.client = Some(self.world.client());
    }

    /// Ends the daemon, or kills it.
    pub fn end(&mut self, kill: bool) {
        self.client = None;
        match kill {
            true => self.world.kill(),
            false => {
                self.world.stop();
            }
        }
    }

    /// Sends a request.
    pub fn call(&mut self, method: &str, params: Value) -> Answer {
        self.client
            .as_mut()
            .expect("a running daemon")
            .call(method, params)
    }

    /// Sends a request, which must succeed.
    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.client
            .as_mut()
            .expect("a running daemon")
            .ok(method, params)
    }

    /// Waits for a fence.
    pub fn sync(&mut self) {
        if self.client.is_some() {
            self.ok("sync", json!({}));
        }
    }

    /// Returns how an agent's hooks speak.
    pub fn voice(&self, who: Who) -> Voice {
        let name = who.session().expect("an agent");
        let main = name.split('/').next().expect("a name");
        let voice = Voice::new("claude", main, self.root());
        match name.split_once('/') {
            Some((_, child)) => voice.sub_agent(child),
            None => voice,
        }
    }

    fn hook(&mut self, event: &Value) -> Value {
        self.ok("hook/event", json!({"agent": "claude", "input": event}))
    }

    fn next_call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    /// An agent reads a file.
    pub fn read(&mut self, who: Who, path: &str) {
        let hash = sha256(fs::read(self.world.path(path)).expect("a file to read"));
        let params = json!({"session": who.session(), "path": path, "hash": hash});
        self.ok("file/read", params);
    }

    /// Returns a file's text; `None` without a file.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.world.path(path)).ok()
    }

    /// An agent's tool writes a file.
    pub fn tool(&mut self, who: Who, tool: Tool, path: &str, text: &str) {
        let here = self.world.path(path);
        if here.exists() {
            self.read(who, path);
        } else if let Some(above) = here.parent() {
            fs::create_dir_all(above).expect("directories");
        }
        let session = who.session();
        match tool {
            Tool::Write => {
                let params = json!({"session": session, "path": path, "text": text});
                let written = self.ok("file/write", params);
                assert_eq!(written["outcome"], "applied", "{written}");
            }
            Tool::Declared => {
                let hash = sha256(text);
                let files = json!([{"path": path, "expect": hash}]);
                let begun = self.ok("edit/begin", json!({"session": session, "files": files}));
                user::write(&here, text);
                let files = json!([{"path": path, "hash": hash}]);
                let done = self.ok(
                    "edit/commit",
                    json!({"edit": begun["edit"], "files": files}),
                );
                assert_eq!(done["files"][0]["outcome"], "applied", "{done}");
            }
            Tool::Hook => {
                let (call, voice) = (self.next_call(), self.voice(who));
                self.hook(&voice.before_write(&call, path, text));
                user::write(&here, text);
                self.hook(&voice.after_write(&call, path, text));
            }
        }
    }

    /// An agent's command runs: `act` is what it does.
    pub fn window(&mut self, who: Who, command: &str, act: impl FnOnce(&mut Self)) {
        self.sync();
        let (call, voice) = (self.next_call(), self.voice(who));
        self.windows.push(second());
        self.hook(&voice.before_shell(&call, command));
        act(self);
        self.hook(&voice.after_shell(&call, command, ""));
        self.windows.push(second());
    }

    /// Runs a shell's command: an agent's in a window, the user's without one.
    pub fn run(&mut self, who: Who, command: &str) {
        match who.session() {
            Some(_) => self.window(who, command, |stage| {
                stage.sh(command);
            }),
            None => {
                self.sh(command);
                self.sync();
            }
        }
    }

    /// Runs a shell's command in the workspace.
    pub fn sh(&self, command: &str) -> Ran {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.root());
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_AUTHOR_NAME", "U"),
            ("GIT_AUTHOR_EMAIL", "u@example.invalid"),
            ("GIT_COMMITTER_NAME", "U"),
            ("GIT_COMMITTER_EMAIL", "u@example.invalid"),
            ("GIT_EDITOR", "true"),
        ] {
            shell.env(name, value);
        }
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            shell.env_remove(name);
        }
        ran(shell)
    }

    /// Runs `touchmark`.
    pub fn touchmark(&self, args: &[&str]) -> Ran {
        ran(self.world.command(args))
    }

    /// The user saves a file.
    pub fn save(&mut self, save: Save, path: &str, text: &str) {
        let here = self.world.path(path);
        if let Some(above) = here.parent() {
            fs::create_dir_all(above).expect("directories");
        }
        match save {
            _ if !here.exists() => user::write(&here, text),
            Save::Over => user::write(&here, text),
            Save::Rename => user::replace(&here, text),
            Save::Backup => user::like_vim(&here, text, 0),
        }
    }

    /// Returns whether a commit at this moment may count as an agent's, since
    /// a command ran in about the same second (REV-2).
    pub fn may_be_a_commands(&self, from: u64, to: u64) -> bool {
        let near = from.saturating_sub(1)..=to + 1;
        self.windows.iter().any(|at| near.contains(at))
    }
}

fn ran(mut command: Command) -> Ran {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = children::start(&mut command).expect("a command");
    let output = child.wait_with_output().expect("its output");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
