//! A workspace, directories of its own, and a real daemon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use touchmark_client::blocking::Client;
use touchmark_client::{Hello, proto};
use touchmark_proto::daemon::{Shutdown, Status, StatusReport};
use touchmark_proto::files::{FileRead, FileStatus};
use touchmark_proto::{BaseDirectories, ClientPath, FileState, Places, SessionId, State};

/// Bytes of every file in a workspace.
pub(crate) const FILE_BYTES: usize = 1024;

/// Files of one directory.
const PER_DIRECTORY: usize = 100;

/// A large workspace takes this long to be read at the most.
const PATIENCE: Duration = Duration::from_secs(120);

/// A workspace with its files, where nothing of the user's is touched.
#[derive(Debug)]
pub(crate) struct World {
    home: TempDir,
    /// On a file system in memory where there is one, as users have it.
    runtime: TempDir,
    pub(crate) root: PathBuf,
    /// Relative to the root.
    pub(crate) names: Vec<String>,
    /// The same, absolute.
    pub(crate) files: Vec<PathBuf>,
    binary: PathBuf,
    socket: PathBuf,
}

/// A running daemon; ended when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    process: Child,
    socket: PathBuf,
}

impl World {
    /// A workspace of `count` files of [`FILE_BYTES`] each.
    pub(crate) fn new(binary: &Path, count: usize) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let shared_memory = Path::new("/dev/shm");
        let runtime = if shared_memory.is_dir() {
            tempfile::tempdir_in(shared_memory)?
        } else {
            tempfile::tempdir()?
        };
        let root = home.path().canonicalize()?.join("workspace");
        fs::create_dir(&root)?;
        let mut names = Vec::with_capacity(count);
        for n in 0..count {
            let directory = format!("d{}", n / PER_DIRECTORY);
            if n % PER_DIRECTORY == 0 {
                fs::create_dir(root.join(&directory))?;
            }
            names.push(format!("{directory}/f{n}.txt"));
        }
        let files: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
        for (n, file) in files.iter().enumerate() {
            fs::write(file, content(n as u64))?;
        }
        let mut world = Self {
            home,
            runtime,
            root,
            names,
            files,
            binary: binary.into(),
            socket: PathBuf::new(),
        };
        world.socket = Places::new(&world.directories(), &world.root, None).socket;
        Ok(world)
    }

    fn directories(&self) -> BaseDirectories {
        BaseDirectories {
            runtime: Some(self.runtime.path().into()),
            state: self.home.path().join("state"),
            config: self.home.path().join("config"),
            cache: self.home.path().join("cache"),
        }
    }

    /// A directory in which sockets and the like may be made.
    pub(crate) fn scratch(&self) -> &Path {
        self.runtime.path()
    }

    /// The command in this world.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.bare_command();
        command.arg("--workspace").arg(&self.root);
        command
    }

    /// The command in this world, without a word about the workspace.
    pub(crate) fn bare_command(&self) -> Command {
        let directories = self.directories();
        let mut command = Command::new(&self.binary);
        command
            .env_remove("TOUCHMARK_SOCKET")
            .env_remove("TOUCHMARK_BIN")
            .env_remove("TOUCHMARK_LOG")
            .env_remove("TOUCHMARK_SESSION")
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.runtime.path())
            .env("XDG_STATE_HOME", &directories.state)
            .env("XDG_CONFIG_HOME", &directories.config)
            .env("XDG_CACHE_HOME", &directories.cache)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts the daemon; ready as soon as it answers a query as of now.
    pub(crate) fn start(&self) -> Result<(Daemon, Duration)> {
        let started = Instant::now();
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
                Ok(client) => {
                    client.call(proto::daemon::Sync {})?;
                    return Ok((daemon, started.elapsed()));
                }
                Err(error) if started.elapsed() > PATIENCE => return Err(error),
                Err(_) => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Has a session read files, so that they are tracked and fresh.
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

    /// Ends it cleanly, so that all of its state is on disk.
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

/// A file's content that no other number has.
pub(crate) fn content(number: u64) -> Vec<u8> {
    let mut text = format!("{number}\n").into_bytes();
    while text.len() < FILE_BYTES {
        text.extend_from_slice(b"a line of text like another\n");
    }
    text.truncate(FILE_BYTES);
    text
}

pub(crate) fn session(name: &str) -> Result<SessionId> {
    SessionId::new(name).map_err(|error| anyhow::anyhow!("{error:?}"))
}

pub(crate) fn read_of(session: &SessionId, name: &str, sync: bool) -> FileRead {
    FileRead {
        session: session.clone(),
        path: name.into(),
        hash: None,
        range: None,
        total_lines: None,
        text: None,
        step: None,
        source: None,
        sync: Some(sync),
        verify: None,
    }
}

pub(crate) fn status_of(session: &SessionId, name: &str, sync: bool) -> FileStatus {
    FileStatus {
        session: session.clone(),
        paths: Some(vec![ClientPath::from(name)]),
        state: Vec::new(),
        sync: Some(sync),
        verify: None,
        limit: None,
        cursor: None,
    }
}

/// One file's state.
pub(crate) fn state_of(client: &Client, query: FileStatus) -> Result<FileState> {
    match client.call(query)?.files.pop() {
        Some(file) => Ok(file),
        None => bail!("no state of a file asked for"),
    }
}

/// How many of a session's files are in a state.
pub(crate) fn count_in(client: &Client, session: &SessionId, state: State) -> Result<usize> {
    let mut count = 0;
    let mut cursor = None;
    loop {
        let page = client.call(FileStatus {
            session: session.clone(),
            paths: None,
            state: vec![state],
            sync: Some(cursor.is_none()),
            verify: None,
            limit: None,
            cursor,
        })?;
        count += page.files.len();
        cursor = page.more;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}

pub(crate) fn report(client: &Client) -> Result<StatusReport> {
    Ok(client.call(Status {})?)
}
