//! Starts a daemon if none runs.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use touchmark_client::{Hello, Start, Workspace, connect_or_start};
//!
//! let mut start = Start::default();
//! start.binary = "/opt/touchmark/bin/touchmark".into();
//! start.deadline = Duration::from_secs(30);
//! let client = connect_or_start(&Workspace::here()?, &Hello::default(), &start)?;
//! # Ok::<(), touchmark_client::Error>(())
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use touchmark_proto::daemon::Shutdown;
use touchmark_proto::{ErrorCode, PROTOCOL};

use crate::blocking::Client;
use crate::error::{Error, Result};
use crate::find::Workspace;
use crate::scratch;
use crate::{Hello, START_DEADLINE};

/// The environment variable that names the binary to start.
pub const BINARY_VARIABLE: &str = "TOUCHMARK_BIN";

/// The binary's name.
pub const BINARY: &str = "touchmark";

/// The name of the hook binary, which is installed in the same directory.
pub const HOOK_BINARY: &str = "touchmark-hook";

/// How long a daemon may take to close its socket after `shutdown`.
const END_DEADLINE: Duration = Duration::from_secs(5);

/// The exit code of a daemon that finds the lock taken by another daemon
/// (SEC-1).
const ANOTHER_RUNS: i32 = 1;

/// How long the daemon of another starter may take to listen, after this
/// process's daemon has found the lock taken.
const WINNER_DEADLINE: Duration = Duration::from_secs(10);

/// How to start a daemon.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Start {
    /// The binary to run; default [`binary`].
    pub binary: OsString,
    /// How long the daemon may take until it answers; default
    /// [`START_DEADLINE`].
    pub deadline: Duration,
    /// Environment variables to set for the daemon, in addition to this
    /// process's.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            binary: binary(),
            deadline: START_DEADLINE,
            environment: Vec::new(),
        }
    }
}

/// Returns the daemon's binary: `TOUCHMARK_BIN` if it is set, `touchmark` beside
/// this process's own program if that is one of touchmark's, else `touchmark` on
/// the `PATH`.
pub fn binary() -> OsString {
    if let Some(named) = std::env::var_os(BINARY_VARIABLE).filter(|name| !name.is_empty()) {
        return named;
    }
    let own = std::env::current_exe().ok();
    let own = own.filter(|own| {
        let name = own.file_name();
        name.is_some_and(|name| name == BINARY || name == HOOK_BINARY)
    });
    let beside = own.map(|own| own.with_file_name(BINARY));
    match beside.filter(|beside| beside.exists()) {
        Some(beside) => beside.into(),
        None => BINARY.into(),
    }
}

/// Connects to the workspace's daemon. Starts one if none runs. If two
/// processes start one at the same moment, the lock lets one daemon run, and
/// both processes connect to it. A daemon of an older protocol is shut down and
/// replaced; its state is kept, open edits included.
///
/// # Errors
/// `startFailed` with what the daemon printed; `incompatible` if a newer daemon
/// runs; `deadline` if a daemon runs and does not answer.
pub fn connect_or_start(workspace: &Workspace, hello: &Hello, start: &Start) -> Result<Client> {
    match workspace.connect(hello) {
        Err(error) if error.is_disconnected() => {}
        // A socket that `TOUCHMARK_SOCKET` names may be another workspace's.
        Err(error) if is_older(&error) && !workspace.is_named() => {
            // The answer to `shutdown` is ignored: the daemon may exit before
            // it answers.
            if let Ok(old) = Client::connect_silent(&workspace.socket(), hello.deadline) {
                let _ = old.call(Shutdown::new());
            }
            wait_until_ended(workspace, END_DEADLINE)?;
            if workspace.is_asleep() {
                // systemd starts the daemon on this connection, from the
                // installed program.
                return workspace.connect(hello);
            }
        }
        done => return done,
    }
    let mut child = spawn(workspace, start)?;
    let until = Instant::now() + start.deadline;
    let result = child.wait_until_answers(workspace, hello, start, until);
    child.leave();
    result
}

/// Waits until no daemon of the workspace runs.
///
/// # Errors
/// `deadline` if a daemon still runs at the deadline.
pub fn wait_until_ended(workspace: &Workspace, deadline: Duration) -> Result<()> {
    let until = Instant::now() + deadline;
    let mut pause = Pause::default();
    while workspace.is_there() {
        if Instant::now() >= until {
            return Err(Error::Deadline {
                method: "shutdown",
                after: deadline,
            });
        }
        pause.take();
    }
    Ok(())
}

/// Returns whether the daemon refused the client because its protocol is older.
fn is_older(error: &Error) -> bool {
    error.daemon().is_some_and(|error| {
        error.code == ErrorCode::Incompatible
            && error.data.server.is_some_and(|theirs| theirs < PROTOCOL)
    })
}

/// A daemon that was started and does not answer yet.
struct Starting {
    child: Child,
    binary: PathBuf,
    /// What the daemon writes to stderr before it opens its log, in an unnamed
    /// file.
    said: Option<File>,
    ended: Option<ExitStatus>,
}

fn spawn(workspace: &Workspace, start: &Start) -> Result<Starting> {
    let said = scratch::file().ok();
    let stderr = said
        .as_ref()
        .and_then(|file| file.try_clone().ok())
        .map_or_else(Stdio::null, Stdio::from);
    // The child does not get its own process group: the leader of a group could
    // not become the leader of a session, which the daemon does (LIFE-1).
    let child = Command::new(&start.binary)
        .args(["daemon", "--on-demand", "--workspace"])
        .arg(&workspace.root)
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .map_err(|error| Error::Start {
            reason: format!(
                "{}: {error} (set {BINARY_VARIABLE} to the binary)",
                Path::new(&start.binary).display()
            ),
        })?;
    Ok(Starting {
        child,
        binary: PathBuf::from(&start.binary),
        said,
        ended: None,
    })
}

impl Starting {
    fn wait_until_answers(
        &mut self,
        workspace: &Workspace,
        hello: &Hello,
        start: &Start,
        mut until: Instant,
    ) -> Result<Client> {
        let mut pause = Pause::default();
        let mut again = false;
        loop {
            // The daemon of another process may have taken the lock, and may
            // listen on another socket.
            let listens = match workspace.connect(hello) {
                Err(error) if error.is_disconnected() => !matches!(error, Error::NoDaemon { .. }),
                done => return done,
            };
            if self.ended.is_none()
                && let Ok(Some(status)) = self.child.try_wait()
            {
                self.ended = Some(status);
                if status.code() != Some(ANOTHER_RUNS) {
                    return Err(self.failed(workspace));
                }
                // The started daemon found the lock taken by another one, which
                // may not listen yet.
                until = until.min(Instant::now() + WINNER_DEADLINE);
            }
            // The started daemon exited because of systemd, which has stopped
            // listening since its daemons failed. A second one prints the
            // cause.
            if self.ended.is_some() && !again && !listens && !workspace.is_taken() {
                again = true;
                *self = spawn(workspace, start)?;
            }
            if Instant::now() >= until {
                return Err(self.failed(workspace));
            }
            pause.take();
        }
    }

    fn failed(&mut self, workspace: &Workspace) -> Error {
        let mut said = Vec::new();
        if let Some(file) = &mut self.said {
            // If the output cannot be read, the exit status is reported alone.
            let _ = file
                .rewind()
                .and_then(|()| file.by_ref().take(16 * 1024).read_to_end(&mut said));
        }
        if let (Some(ANOTHER_RUNS), Some(pid)) = (
            self.ended.and_then(|status| status.code()),
            workspace.holder(),
        ) {
            return Error::Start {
                reason: format!(
                    "process {pid} holds the store of this workspace, and its socket cannot be reached from here: it may run in a sandbox. `touchmark stop --pid {pid}` ends it"
                ),
            };
        }
        let said = String::from_utf8_lossy(&said);
        let last: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = last
            .get(last.len().saturating_sub(3)..)
            .unwrap_or_default()
            .join("; ");
        let how = match self.ended {
            Some(status) => status.to_string(),
            None => "it does not answer".into(),
        };
        Error::Start {
            reason: if last.is_empty() {
                format!("{}: {how}", self.binary.display())
            } else {
                format!("{last} ({how})")
            },
        }
    }

    /// Detaches from the daemon. A thread collects its exit status if it exits
    /// before this process, so that no zombie remains.
    fn leave(self) {
        if self.ended.is_none() {
            let mut child = self.child;
            // Without the thread, a zombie remains until this process exits.
            let _ = thread::Builder::new()
                .name("touchmark-reap".into())
                .spawn(move || child.wait());
        }
    }
}

/// Pauses that stay short at first: a daemon usually answers within
/// milliseconds, and doubled pauses would double that time. Then they double,
/// since a daemon that does not answer should not be polled too often.
#[derive(Default)]
struct Pause {
    taken: u32,
}

impl Pause {
    /// The number of pauses of the shortest length.
    const SHORT: u32 = 32;
    const SHORTEST: Duration = Duration::from_micros(500);
    const LONGEST: Duration = Duration::from_millis(50);

    fn take(&mut self) {
        let doubled = self.taken.saturating_sub(Self::SHORT).min(16);
        thread::sleep((Self::SHORTEST * (1 << doubled)).min(Self::LONGEST));
        self.taken += 1;
    }
}
