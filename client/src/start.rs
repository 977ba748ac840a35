//! Starting a daemon where none runs.

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

/// The variable that names the binary to start.
pub const BINARY_VARIABLE: &str = "TOUCHMARK_BIN";

/// The binary's name.
const BINARY: &str = "touchmark";

/// How long a daemon may take to let go of its socket after `shutdown`.
const END_DEADLINE: Duration = Duration::from_secs(5);

/// What a daemon says when another holds the lock (SEC-1).
const ANOTHER_RUNS: i32 = 1;

/// How long another starter's daemon may take to listen after ours has given
/// way to it.
const WINNER_DEADLINE: Duration = Duration::from_secs(10);

/// How to start a daemon.
#[derive(Clone, Debug)]
pub struct Start {
    /// The binary.
    pub binary: OsString,
    /// How long it may take until it answers.
    pub deadline: Duration,
    /// Variables set for it.
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

/// `TOUCHMARK_BIN`, or this very program if it is `touchmark`, or `touchmark`
/// on the `PATH`.
pub fn binary() -> OsString {
    if let Some(named) = std::env::var_os(BINARY_VARIABLE).filter(|name| !name.is_empty()) {
        return named;
    }
    match std::env::current_exe() {
        Ok(own) if own.file_name().is_some_and(|name| name == BINARY) && own.exists() => own.into(),
        _ => BINARY.into(),
    }
}

/// Connects to the workspace's daemon, and starts one if none runs. Of two
/// starters at the same moment one daemon stays (by its lock), and both
/// connect to it. A daemon of an older protocol is asked to end and replaced;
/// its state, open edits included, survives.
///
/// # Errors
/// `startFailed` with what the daemon said; `incompatible` if a newer one
/// runs; `deadline` if one runs and does not answer.
pub fn connect_or_start(workspace: &Workspace, hello: &Hello, start: &Start) -> Result<Client> {
    match workspace.connect(hello) {
        Err(error) if error.is_disconnected() => {}
        // One that is named outright may be another workspace's.
        Err(error) if is_older(&error) && !workspace.is_named() => {
            // What it answers to `shutdown` does not matter: it may be gone
            // before it could.
            if let Ok(old) = Client::connect_silent(&workspace.socket(), hello.deadline) {
                let _ = old.call(Shutdown {});
            }
            wait_until_ended(workspace, END_DEADLINE)?;
            if workspace.is_asleep() {
                // By systemd, from the program that is installed now.
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
/// `deadline`.
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

/// Whether the daemon refused us because it speaks an older protocol.
fn is_older(error: &Error) -> bool {
    error.daemon().is_some_and(|error| {
        error.code == ErrorCode::Incompatible
            && error.data.server.is_some_and(|theirs| theirs < PROTOCOL)
    })
}

/// A daemon that is coming up.
struct Starting {
    child: Child,
    binary: PathBuf,
    /// What it writes to stderr before it has a log: in a file
    /// without a name.
    said: Option<File>,
    ended: Option<ExitStatus>,
}

fn spawn(workspace: &Workspace, start: &Start) -> Result<Starting> {
    let said = scratch::file().ok();
    let stderr = said
        .as_ref()
        .and_then(|file| file.try_clone().ok())
        .map_or_else(Stdio::null, Stdio::from);
    // No process group of its own: a group's leader could not become the
    // session leader that the daemon makes itself (LIFE-1).
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
            // Another's may have won, and listen elsewhere.
            let listens = match workspace.connect(hello) {
                Err(error) if error.is_disconnected() => !matches!(error, Error::NoDaemon { .. }),
                done => return done,
            };
            if self.ended.is_none()
                && let Ok(Some(status)) = self.child.try_wait()
            {
                self.ended = Some(status);
                if status.code() != Some(ANOTHER_RUNS) {
                    return Err(self.failed());
                }
                // Ours gave way to another starter's, which may not listen
                // yet.
                until = until.min(Instant::now() + WINNER_DEADLINE);
            }
            // Ours gave way to systemd, which has stopped listening since its
            // daemons failed. One that it is not in the way of says why.
            if self.ended.is_some() && !again && !listens && !workspace.is_taken() {
                again = true;
                *self = spawn(workspace, start)?;
            }
            if Instant::now() >= until {
                return Err(self.failed());
            }
            pause.take();
        }
    }

    fn failed(&mut self) -> Error {
        let mut said = Vec::new();
        if let Some(file) = &mut self.said {
            // Without its words the exit status has to do.
            let _ = file
                .rewind()
                .and_then(|()| file.by_ref().take(16 * 1024).read_to_end(&mut said));
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

    /// Lets the daemon go its own way. A thread collects its exit status if
    /// it ends before this process, so that no zombie stays.
    fn leave(self) {
        if self.ended.is_none() {
            let mut child = self.child;
            // Without the thread the zombie lasts as long as this process.
            let _ = thread::Builder::new()
                .name("touchmark-reap".into())
                .spawn(move || child.wait());
        }
    }
}

/// Ever longer pauses between looks: a daemon is up within milliseconds, and
/// one that is not should not be looked at all the time.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(Duration::from_millis(1))
    }
}

impl Pause {
    fn take(&mut self) {
        thread::sleep(self.0);
        self.0 = (self.0 * 2).min(Duration::from_millis(50));
    }
}
