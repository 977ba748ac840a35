//! A workspace with its own home directory and a daemon.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use touchmark_client::{Environment, Start};
use touchmark_proto::BaseDirectories;

use crate::children::{self, unshared};
use crate::session::Session;
use crate::wire::{Client, PATIENCE};

/// Temporary directories and a daemon. The daemon ends when this is dropped.
pub struct World {
    /// HOME, state, configuration and the workspace.
    base: Option<TempDir>,
    /// XDG_RUNTIME_DIR. Its path is short, since a socket's path has at most
    /// 107 bytes.
    runtime: TempDir,
    workspace: PathBuf,
    socket: PathBuf,
    daemon: Option<Child>,
    starts: u32,
    /// Additional variables for the daemon and for commands.
    env: Vec<(String, String)>,
    /// The program and arguments that start the daemon; empty to start it
    /// directly.
    launcher: Vec<String>,
}

/// Returns the program under test: `TOUCHMARK_BIN`, or the one in the build
/// directory.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TOUCHMARK_BIN") {
        return path.into();
    }
    let path = target().join("touchmark");
    assert!(
        path.exists(),
        "{} is not built: run `cargo build --profile test -p touchmark-cli`, or tests/run",
        path.display()
    );
    path
}

/// Returns the directory above the test programs' directory: `target/debug`.
pub fn target() -> PathBuf {
    let exe = std::env::current_exe().expect("the test's own path");
    let deps = exe.parent().expect("a test program is in a directory");
    match deps.file_name().and_then(OsStr::to_str) {
        Some("deps") => deps.parent().expect("deps is in a directory").to_owned(),
        _ => deps.to_owned(),
    }
}

/// Returns the watch backend that the variable `TOUCHMARK_TEST_WATCH` selects
/// for daemons, so that everything can run on each backend. `None` for the
/// default.
fn way_to_watch() -> Option<String> {
    std::env::var("TOUCHMARK_TEST_WATCH")
        .ok()
        .filter(|way| !way.is_empty())
}

/// Returns the backend that daemons watch with.
pub fn backend() -> String {
    way_to_watch().unwrap_or_else(|| "inotify".into())
}

/// Returns whether the fence needs a separate directory and a watch on it.
pub fn fence_takes_a_directory() -> bool {
    backend() != "inotify"
}

impl World {
    /// Creates a workspace with a running daemon.
    pub fn new() -> Self {
        let mut world = Self::asleep();
        world.start();
        world
    }

    /// Creates a workspace without a daemon.
    pub fn asleep() -> Self {
        // Not below /tmp, since editors treat files there differently.
        let place = target().join("worlds");
        fs::create_dir_all(&place).expect("a place for worlds");
        Self::asleep_in(&place)
    }

    /// Creates a workspace without a daemon below another directory.
    pub fn asleep_in(place: &Path) -> Self {
        let base = tempfile::Builder::new()
            .prefix("w")
            .tempdir_in(place)
            .expect("a world's directory");
        let runtime = tempfile::Builder::new()
            .prefix("tm")
            .tempdir()
            .expect("a runtime directory");
        for name in ["home", "state", "config", "ws"] {
            fs::create_dir(base.path().join(name)).expect("a directory");
        }
        let workspace = base.path().join("ws").canonicalize().expect("a workspace");
        let mut world = Self {
            base: Some(base),
            runtime,
            workspace,
            socket: PathBuf::new(),
            daemon: None,
            starts: 0,
            env: Vec::new(),
            launcher: Vec::new(),
        };
        world.find_socket();
        if way_to_watch().is_some() {
            world.configure("");
        }
        world
    }

    /// Makes a directory below the workspace the workspace. Only before the
    /// start.
    pub fn nest(&mut self, relative: &str) {
        assert!(self.daemon.is_none(), "a daemon is running");
        self.workspace = self.workspace.join(relative);
        fs::create_dir_all(&self.workspace).expect("a workspace");
        self.find_socket();
    }

    fn find_socket(&mut self) {
        let printed = self.run(&["socket"]);
        assert!(
            printed.status.success(),
            "touchmark socket: {}",
            String::from_utf8_lossy(&printed.stderr)
        );
        self.socket = String::from_utf8(printed.stdout)
            .expect("a UTF-8 socket path")
            .trim_end()
            .into();
    }

    /// Adds a variable for daemons and commands that are started from now on.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.push((name.into(), value.into()));
    }

    /// Has the daemon started by this program with these arguments. The program
    /// must become the daemon by `exec`.
    pub fn launch_through(&mut self, launcher: &[&str]) {
        self.launcher = launcher.iter().map(|&word| word.into()).collect();
    }

    fn base(&self) -> &Path {
        self.base.as_ref().expect("a living world").path()
    }

    /// Returns the workspace's canonical path.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the runtime directory.
    pub fn runtime(&self) -> &Path {
        self.runtime.path()
    }

    /// Returns the directory that contains the state directory.
    pub fn state(&self) -> PathBuf {
        self.base().join("state")
    }

    /// Returns the directory that contains the user's configuration.
    pub fn config(&self) -> PathBuf {
        self.base().join("config")
    }

    /// Writes the user's configuration, for daemons that are started from now
    /// on.
    pub fn configure(&self, text: &str) {
        let directory = self.config().join("touchmark");
        fs::create_dir_all(&directory).expect("a directory");
        let way = way_to_watch().map(|way| format!("watch = {way:?}\n"));
        fs::write(
            directory.join("config.toml"),
            way.unwrap_or_default() + text,
        )
        .expect("a configuration");
    }

    /// Returns a directory outside the workspace, on the same file system.
    pub fn outside(&self) -> PathBuf {
        self.base().join("home")
    }

    /// Returns this world's directories for the client library.
    pub fn environment(&self) -> Environment {
        Environment {
            base: BaseDirectories {
                runtime: Some(self.runtime().to_owned()),
                state: self.state(),
                config: self.config(),
                cache: self.base().join("home/.cache"),
            },
            socket: None,
        }
    }

    /// Returns how the client library starts daemons in this world.
    pub fn starting(&self) -> Start {
        let mut dressed = Command::new(binary());
        self.dress(&mut dressed);
        let variables = dressed.get_envs();
        Start {
            binary: binary().into(),
            environment: variables
                .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                .collect(),
            ..Start::default()
        }
    }

    /// Returns the names of the files that daemons keep in the runtime
    /// directory and of their locks.
    pub fn left_behind(&self) -> Vec<String> {
        let names = |directory: PathBuf| {
            let entries = fs::read_dir(directory).into_iter().flatten();
            entries.map(|entry| entry.expect("an entry").file_name())
        };
        let locks = names(self.state().join("touchmark"))
            .filter(|name| Path::new(name).extension() == Some(OsStr::new("lock")));
        let mut names: Vec<String> = names(self.runtime().join("touchmark"))
            .chain(locks)
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the daemon's socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the daemon's lock file, next to its state.
    pub fn lock(&self) -> PathBuf {
        let key = self.socket.file_stem().expect("a key");
        let lock = self.state().join("touchmark").join(key);
        lock.with_extension("lock")
    }

    /// Returns the daemon's process id.
    pub fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a running daemon").id()
    }

    /// Returns the absolute path of a name in the workspace.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.workspace.join(relative)
    }

    /// Returns a `touchmark` command in this world, not run yet.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(Command::new(binary()), args)
    }

    fn command_of(&self, mut command: Command, args: &[&str]) -> Command {
        command
            // Before the arguments: after `run` it would belong to that
            // command.
            .arg("--workspace")
            .arg(&self.workspace)
            .args(args)
            .current_dir(&self.workspace)
            .stdin(Stdio::null());
        self.dress(&mut command);
        command
    }

    /// Sets this world's directories in a command's environment.
    pub fn dress(&self, command: &mut Command) {
        for name in ["TOUCHMARK_SOCKET", "TOUCHMARK_SESSION", "TOUCHMARK_LOG"] {
            command.env_remove(name);
        }
        command
            .env("HOME", self.base().join("home"))
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("XDG_STATE_HOME", self.state())
            .env("XDG_CONFIG_HOME", self.config())
            .env("XDG_CACHE_HOME", self.base().join("home/.cache"))
            .env("NO_COLOR", "1")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
    }

    /// Runs a `touchmark` command until it exits.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = children::start(&mut command)
            .unwrap_or_else(|error| panic!("touchmark {args:?}: {error}"));
        finish(child, &format!("touchmark {args:?}"))
    }

    /// Returns the path of the log of the daemon's latest start.
    pub fn log_path(&self) -> PathBuf {
        self.base().join(format!("daemon-{}.log", self.starts))
    }

    /// Starts the daemon and waits until it answers.
    pub fn start(&mut self) {
        if let Err(status) = self.try_start() {
            panic!("the daemon ended at its start: {status}\n{}", self.log());
        }
    }

    /// Starts the daemon and waits until it answers or exits.
    ///
    /// # Errors
    /// The exit status, if it exits before it answers.
    pub fn try_start(&mut self) -> Result<(), ExitStatus> {
        assert!(self.daemon.is_none(), "a daemon is running");
        self.starts += 1;
        let log = File::create(self.log_path()).expect("a log");
        let program = match self.launcher.split_first() {
            None => Command::new(binary()),
            Some((launcher, arguments)) => {
                let mut command = Command::new(launcher);
                command.args(arguments).arg(binary());
                command
            }
        };
        let mut command = self.command_of(program, &["daemon"]);
        command
            .stdout(log.try_clone().expect("the log"))
            .stderr(log)
            .process_group(0);
        let mut child = children::start(&mut command).expect("the daemon's start");
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(mut client) = Client::connect(&self.socket)
                && client.try_call("ping", &json!({})).is_ok()
            {
                self.daemon = Some(child);
                return Ok(());
            }
            if let Some(status) = child.try_wait().expect("the daemon's state") {
                return Err(status);
            }
            if Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                panic!("no daemon answers\n{}", self.log());
            }
            // Polls, since the process has no other way to report that it is
            // ready.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns what the daemon has logged since its latest start.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Returns the log file that daemons keep themselves. It continues across
    /// starts.
    pub fn said(&self) -> String {
        let key = self.socket.file_stem().expect("a key");
        let log = self.state().join("touchmark").join(key).join("daemon.log");
        fs::read_to_string(log).unwrap_or_default()
    }

    /// Kills the daemon (`kill -9`), and waits until it has exited.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Requests the daemon's shutdown, and returns its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let mut client = self.client();
        client.ok("shutdown", json!({}));
        self.wait_end()
    }

    /// Waits until the daemon exits, and returns its exit code.
    pub fn wait_end(&mut self) -> Option<i32> {
        let mut child = self.daemon.take().expect("a running daemon");
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = child.try_wait().expect("the daemon's state") {
                return status.code();
            }
            if Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the daemon does not end\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills the daemon (`kill -9`) and starts a new one.
    pub fn restart(&mut self) {
        self.kill();
        self.start();
    }

    /// Panics if the daemon does not run or has panicked.
    pub fn healthy(&mut self) {
        let child = self.daemon.as_mut().expect("a running daemon");
        if let Some(status) = child.try_wait().expect("the daemon's state") {
            panic!("the daemon has ended: {status}\n{}", self.log());
        }
        let log = self.log();
        assert!(!log.contains("panicked"), "the daemon panicked:\n{log}");
        self.audit();
    }

    /// Panics if what the daemon has on record differs from the disk. Does
    /// nothing for a daemon that does not run, or was stopped by the test.
    pub fn audit(&mut self) {
        let Some(child) = &mut self.daemon else {
            return;
        };
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        let stopped = stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with(['T', 't']));
        if stopped || !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        let Ok(mut client) = Client::connect(&self.socket) else {
            return;
        };
        let answer = client.try_call("audit", &json!({}));
        if let Ok(Ok(audited)) = answer {
            assert_eq!(
                audited["differences"],
                json!([]),
                "belief and disk differ; the log:\n{}",
                self.log()
            );
        }
    }

    /// Opens a connection to the daemon.
    pub fn client(&self) -> Client {
        Client::connect(&self.socket)
            .unwrap_or_else(|error| panic!("connecting: {error}\n{}", self.log()))
    }

    /// Returns a session with its own connection. It is opened as an agent's
    /// session is, if the daemon can store that.
    pub fn session(&self, name: &str) -> Session {
        let mut session = Session::new(self.client(), name, &self.workspace);
        let _refused = session.call("session/open", serde_json::json!({}));
        session
    }

    /// Creates a file, and its directories, with this content.
    pub fn file(&self, relative: &str, content: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        unshared(|| fs::write(&path, content))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.audit();
        }
        self.kill();
        if std::thread::panicking()
            && let Some(base) = self.base.take()
        {
            let log = fs::read_to_string(base.path().join(format!("daemon-{}.log", self.starts)))
                .unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            eprintln!(
                "the world is kept in {}; the daemon's last words:\n{}",
                base.path().display(),
                tail.join("\n")
            );
            let _ = base.keep();
        }
    }
}

/// Waits until a process exits, with a time limit. Returns its output.
pub fn finish(child: Child, what: &str) -> Output {
    finish_within(child, what, PATIENCE)
}

/// Waits until a process exits, at most for that time. Returns its output.
pub fn finish_within(mut child: Child, what: &str, limit: Duration) -> Output {
    // Both pipes are drained on other threads, so that a full pipe blocks
    // nothing.
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = drain(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = drain(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a process's state") {
            break status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{what} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output {
        status,
        stdout: stdout.join().expect("stdout"),
        stderr: stderr.join().expect("stderr"),
    }
}
