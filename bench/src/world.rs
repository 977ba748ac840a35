//! A workspace in temporary directories, with a real daemon.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use touchmark_client::WITNESS_BINARY;
use touchmark_client::blocking::Client;
use touchmark_client::start::HOOK_BINARY;
use touchmark_client::{Hello, hash_of};
use touchmark_proto::daemon::{Shutdown, Status, StatusReport};
use touchmark_proto::files::{FileRead, FileStatus};
use touchmark_proto::{
    Author, AuthorKind, BaseDirectories, ClientPath, FileState, Places, SessionId, State,
};

use crate::tree::Tree;

/// The longest time that a large workspace may take to be read.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The time after the last request or event until the daemon is quiet: its
/// threads have ended and its memory was freed.
pub(crate) const CALM: Duration = Duration::from_secs(3);

/// The number of files per answer.
const PAGE: u32 = 10_000;

/// A workspace with its files, and directories that are separate from the
/// user's.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) tree: Tree,
    runtime: TempDir,
    binary: PathBuf,
    socket: PathBuf,
}

/// A running daemon. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    process: Child,
    socket: PathBuf,
}

impl World {
    /// Creates a workspace of `count` files.
    pub(crate) fn new(binary: &Path, count: usize) -> Result<Self> {
        let mut world = Self {
            tree: Tree::new(count)?,
            runtime: scratch()?,
            binary: binary.into(),
            socket: PathBuf::new(),
        };
        world.socket = Places::new(&world.directories(), &world.tree.root, None).socket;
        Ok(world)
    }

    fn directories(&self) -> BaseDirectories {
        BaseDirectories {
            runtime: Some(self.runtime.path().into()),
            state: self.tree.beside().join("state"),
            config: self.tree.beside().join("config"),
            cache: self.tree.beside().join("cache"),
        }
    }

    /// Returns a directory for sockets and other temporary files.
    pub(crate) fn scratch(&self) -> &Path {
        self.runtime.path()
    }

    /// Returns the `touchmark` command for this world's workspace.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.bare_command();
        command.arg("--workspace").arg(&self.tree.root);
        command
    }

    /// Returns the `touchmark` command in this world, without `--workspace`.
    pub(crate) fn bare_command(&self) -> Command {
        self.bare(&self.binary)
    }

    /// Returns the program for hooks in this world.
    pub(crate) fn bare_hook(&self) -> Command {
        self.bare(&self.binary.with_file_name(HOOK_BINARY))
    }

    /// Returns the program that witnesses commands.
    pub(crate) fn witness(&self) -> PathBuf {
        self.binary.with_file_name(WITNESS_BINARY)
    }

    /// Returns the ring of a command's window.
    pub(crate) fn ring(&self, window: &str) -> PathBuf {
        Places::new(&self.directories(), &self.tree.root, None).ring(window)
    }

    fn bare(&self, program: &Path) -> Command {
        let directories = self.directories();
        let mut command = Command::new(program);
        command
            .env_remove("TOUCHMARK_SOCKET")
            .env_remove("TOUCHMARK_BIN")
            .env_remove("TOUCHMARK_LOG")
            .env_remove("TOUCHMARK_SESSION")
            .env("HOME", self.tree.beside())
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("XDG_STATE_HOME", &directories.state)
            .env("XDG_CONFIG_HOME", &directories.config)
            .env("XDG_CACHE_HOME", &directories.cache)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts the daemon. Returns when it answers.
    pub(crate) fn start(&self) -> Result<(Daemon, Client)> {
        let until = Instant::now() + PATIENCE;
        let daemon = Daemon {
            process: self
                .command()
                .arg("daemon")
                .spawn()
                .with_context(|| format!("{} cannot be started", self.binary.display()))?,
            socket: self.socket.clone(),
        };
        loop {
            match daemon.connect() {
                Ok(client) => return Ok((daemon, client)),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Configures the daemon to watch through the `notify` crate from its next
    /// start on.
    pub(crate) fn watch_through_notify(&self) -> Result<()> {
        let directory = self.directories().config.join("touchmark");
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("config.toml"), "watch = \"notify\"\n")?;
        Ok(())
    }

    /// Lets a session read files, so that they are tracked and fresh.
    pub(crate) fn read(
        &self,
        client: &Client,
        session: &SessionId,
        names: &[String],
    ) -> Result<()> {
        let reads = names.iter().map(|name| read_of(session, name, true));
        for result in client.pipeline(reads)? {
            result?;
        }
        Ok(())
    }
}

impl Daemon {
    pub(crate) fn connect(&self) -> Result<Client> {
        let mut hello = Hello::new("touchmark-bench", env!("CARGO_PKG_VERSION"));
        hello.deadline = PATIENCE;
        Ok(Client::connect(&self.socket, &hello)?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Stops the daemon cleanly, so that all of its state is on disk.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.connect()?.call(Shutdown {})?;
        let until = Instant::now() + PATIENCE;
        while self.process.try_wait()?.is_none() {
            ensure!(Instant::now() < until, "the daemon does not end");
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a temporary directory, in memory if possible. A user's runtime
/// directory is in memory too.
pub(crate) fn scratch() -> Result<TempDir> {
    let shared_memory = Path::new("/dev/shm");
    Ok(if shared_memory.is_dir() {
        tempfile::tempdir_in(shared_memory)?
    } else {
        tempfile::tempdir()?
    })
}

pub(crate) fn session(name: &str) -> Result<SessionId> {
    SessionId::new(name).map_err(|error| anyhow::anyhow!("{error:?}"))
}

pub(crate) fn read_of(session: &SessionId, name: &str, sync: bool) -> FileRead {
    FileRead::new(session.clone(), name).sync(sync)
}

pub(crate) fn status_of(session: &SessionId, name: &str, sync: bool) -> FileStatus {
    FileStatus::new(session.clone())
        .paths(vec![ClientPath::from(name)])
        .sync(sync)
}

/// Returns the state of one file.
pub(crate) fn state_of(client: &Client, query: FileStatus) -> Result<FileState> {
    match client.call(query)?.files.pop() {
        Some(file) => Ok(file),
        None => bail!("no state of a file asked for"),
    }
}

/// Returns all files of a session that are in a state, as of now.
pub(crate) fn all_in(client: &Client, session: &SessionId, state: State) -> Result<Vec<FileState>> {
    let mut files = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.call(FileStatus {
            state: vec![state],
            sync: Some(cursor.is_none()),
            limit: Some(PAGE),
            cursor,
            ..FileStatus::new(session.clone())
        })?;
        files.extend(page.files);
        cursor = page.more;
        if cursor.is_none() {
            return Ok(files);
        }
    }
}

/// Returns whether the hash in a file's state is that of its content on disk.
pub(crate) fn is_as_on_disk(tree: &Tree, file: &FileState) -> Result<bool> {
    let name = std::ffi::OsStr::from_bytes(file.path.as_bytes());
    let bytes = fs::read(tree.root.join(name))?;
    Ok(file.hash == Some(hash_of(&bytes)))
}

pub(crate) fn report(client: &Client) -> Result<StatusReport> {
    Ok(client.call(Status {})?)
}

/// Returns whether one of the authors is of a kind.
pub(crate) fn is_by(authors: Option<&[Author]>, kind: AuthorKind) -> bool {
    authors.is_some_and(|authors| authors.iter().any(|author| author.kind == kind))
}
