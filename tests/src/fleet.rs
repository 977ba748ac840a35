//! Many workspaces of one user, each with its own daemon, started by clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use touchmark_client::blocking::Client;
use touchmark_client::{Hello, Workspace, connect_or_start};

use crate::children;
use crate::process::{daemons_below, signal};
use crate::user::git;
use crate::wire::PATIENCE;
use crate::world::{World, binary, finish};

/// A file that each workspace has.
pub const FILE: &str = "src/a.txt";

/// The workspaces. Their daemons end when this is dropped.
pub struct Fleet {
    world: World,
    /// The workspaces' canonical paths.
    pub roots: Vec<PathBuf>,
}

impl Fleet {
    /// Creates so many git worktrees of one small repository, and the user's
    /// configuration.
    pub fn of_worktrees(world: World, count: usize, configuration: &str) -> Self {
        world.configure(configuration);
        let repository = world.outside().join("repository");
        fs::create_dir_all(repository.join("src/deep/er")).expect("directories");
        for name in [FILE, "src/deep/b.txt", "src/deep/er/c.txt"] {
            fs::write(repository.join(name), "one\ntwo\nthree\n").expect("a file");
        }
        git(&repository, &["init", "-q", "-b", "main"]);
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", "begin"]);
        let trees = world.outside().join("trees");
        fs::create_dir(&trees).expect("a directory");
        let roots = (0..count).map(|number| trees.join(format!("t{number:04}")));
        let roots: Vec<PathBuf> = roots.collect();
        for root in &roots {
            let root = root.to_str().expect("a UTF-8 path");
            git(&repository, &["worktree", "add", "-q", "--detach", root]);
        }
        Self { world, roots }
    }

    /// Returns the world whose user this is.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Returns a `touchmark` command, not run yet. It names no workspace.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir("/").stdin(Stdio::null());
        self.world.dress(&mut command);
        command
    }

    /// Runs a `touchmark` command until it exits.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = children::start(&mut command).expect("a command");
        finish(child, &format!("touchmark {args:?}"))
    }

    /// Returns what `touchmark fleet status --json` prints.
    pub fn status(&self) -> Value {
        let output = self.run(&["fleet", "status", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Connects to the daemon of a workspace, and starts it if none runs.
    pub fn connect(&self, root: &Path) -> Client {
        let workspace = Workspace::at(root, &self.world.environment()).expect("a workspace");
        let hello = Hello {
            deadline: PATIENCE,
            ..Hello::new("tests", "1")
        };
        // One that is reached as it ends tells its clients to come again.
        let connected = (0..20).find_map(|_| {
            let connected = connect_or_start(&workspace, &hello, &self.world.starting());
            let again = |error: &touchmark_client::Error| {
                error.is_disconnected() || error.to_string().contains("ending")
            };
            match connected {
                Err(error) if again(&error) => None,
                done => Some(done),
            }
        });
        let connected = connected.expect("a daemon that stays");
        connected.unwrap_or_else(|error| panic!("{}: {error}", root.display()))
    }

    /// Returns the processes of all daemons.
    pub fn daemons(&self) -> Vec<u32> {
        daemons_below(self.world.outside().parent().expect("a world"))
    }

    /// Returns the files of daemons that do not run any more: sockets, locks
    /// and the like.
    pub fn left_behind(&self) -> Vec<String> {
        let states = fs::read_dir(self.world.state().join("touchmark"));
        let states = states.into_iter().flatten().flatten();
        let files = states.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut left = self.world.left_behind();
        left.extend(names);
        left
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for daemon in self.daemons() {
            // It may have ended meanwhile.
            let _gone = std::panic::catch_unwind(|| signal(daemon, Signal::KILL));
        }
    }
}

/// Returns the row of a workspace in what `fleet status --json` has printed.
pub fn row_of(status: &Value, root: &Path) -> Value {
    let rows = status["workspaces"].as_array().expect("rows");
    let found = rows
        .iter()
        .find(|row| row["path"] == *root.to_string_lossy());
    found.cloned().unwrap_or_default()
}
