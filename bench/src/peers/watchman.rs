//! Runs watchman in a separate directory, so that the user's files are not
//! affected.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tree::Tree;
use crate::world::{PATIENCE, scratch};

/// The directory with watchman's socket, and its state between two runs.
#[derive(Debug)]
pub(crate) struct Home {
    program: PathBuf,
    place: TempDir,
}

/// A running server. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    socket: PathBuf,
}

/// A connection that is kept open.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<UnixStream>);

/// A server that watches one tree, with the clock of its last answer.
#[derive(Debug)]
pub(crate) struct Watched {
    connection: Connection,
    clock: String,
    server: Server,
    home: Home,
}

/// The changes since a clock.
#[derive(Debug, Deserialize)]
pub(crate) struct Changes {
    pub(crate) clock: String,
    pub(crate) files: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Refused {
    error: String,
}

impl Home {
    pub(crate) fn new(program: &Path) -> Result<Self> {
        Ok(Self {
            program: program.into(),
            place: scratch()?,
        })
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("socket")
    }

    /// Returns watchman's command, which starts a server if none runs.
    pub(crate) fn command(&self) -> Command {
        let place = self.place.path();
        let option = |name: &str, file: &str| format!("--{name}={}", place.join(file).display());
        let mut command = Command::new(&self.program);
        command
            .args([
                option("sockname", "socket"),
                option("statefile", "state"),
                option("logfile", "log"),
                option("pidfile", "pid"),
            ])
            .env("HOME", place)
            // Without this, the machine's configuration would be used.
            .env("WATCHMAN_CONFIG_FILE", place.join("no-configuration"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts the server. It watches again what it watched before.
    pub(crate) fn start(&self) -> Result<Server> {
        let process = self
            .command()
            .arg("--foreground")
            .spawn()
            .context("watchman cannot be started")?;
        let server = Server {
            process,
            socket: self.socket(),
        };
        server.connect()?;
        Ok(server)
    }

    /// Stops a server that the command has started.
    pub(crate) fn stop(&self) -> Result<()> {
        let mut connection = connect(&self.socket())?;
        connection.ask(&json!(["shutdown-server"]))?;
        // The server closes all connections when it exits.
        let mut rest = Vec::new();
        let _ = connection.0.read_until(0, &mut rest);
        wait_until(|| Ok(UnixStream::connect(self.socket()).is_err()))
    }
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn connect(&self) -> Result<Connection> {
        connect(&self.socket)
    }

    /// Stops the server cleanly, so that its state is on disk.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.connect()?.ask(&json!(["shutdown-server"]))?;
        wait_until(|| Ok(self.process.try_wait()?.is_some()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Connection {
    /// Sends a command and waits for its answer.
    fn ask(&mut self, command: &Value) -> Result<String> {
        let mut line = command.to_string();
        line.push('\n');
        self.0.get_mut().write_all(line.as_bytes())?;
        line.clear();
        self.0.read_line(&mut line)?;
        if let Ok(Refused { error }) = serde_json::from_str(&line) {
            bail!("watchman: {error}");
        }
        Ok(line)
    }

    /// Makes watchman watch a tree. Returns the clock at which it has seen all
    /// files.
    pub(crate) fn watch(&mut self, tree: &Tree) -> Result<String> {
        self.ask(&json!(["watch", tree.root]))?;
        let found = self.query(&json!(["query", tree.root, {"fields": ["name"]}]))?;
        let files = files_of(&found);
        ensure!(
            files == tree.count(),
            "watchman sees {files} of {} files",
            tree.count()
        );
        Ok(found.clock)
    }

    /// Returns the changes since a clock, as of now: watchman waits for its
    /// cookie.
    pub(crate) fn since(&mut self, tree: &Tree, clock: &str) -> Result<Changes> {
        self.query(&json!(["query", tree.root, {"since": clock, "fields": ["name"]}]))
    }

    fn query(&mut self, query: &Value) -> Result<Changes> {
        let line = self.ask(query)?;
        serde_json::from_str(&line).with_context(|| format!("watchman said {line:.200}"))
    }
}

impl Watched {
    pub(crate) fn new(program: &Path, tree: &Tree) -> Result<Self> {
        let home = Home::new(program)?;
        let server = home.start()?;
        let mut connection = server.connect()?;
        let clock = connection.watch(tree)?;
        Ok(Self {
            connection,
            clock,
            server,
            home,
        })
    }

    /// Returns the changes since the last call, as of now.
    pub(crate) fn since(&mut self, tree: &Tree) -> Result<Changes> {
        let changes = self.connection.since(tree, &self.clock)?;
        self.clock.clone_from(&changes.clock);
        Ok(changes)
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Stops the server. The watched tree stays in its state.
    pub(crate) fn stop(self) -> Result<Home> {
        self.server.stop()?;
        Ok(self.home)
    }
}

/// Returns the number of changed files that belong to a tree.
pub(crate) fn files_of(changes: &Changes) -> usize {
    let files = changes.files.iter();
    files.filter(|name| name.ends_with(".txt")).count()
}

fn connect(socket: &Path) -> Result<Connection> {
    let mut stream = None;
    wait_until(|| {
        stream = UnixStream::connect(socket).ok();
        Ok(stream.is_some())
    })?;
    let stream = stream.context("watchman does not listen")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(Connection(BufReader::with_capacity(1 << 16, stream)))
}

fn wait_until(mut so: impl FnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !so()? {
        ensure!(Instant::now() < until, "watchman does not do as it is told");
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}
