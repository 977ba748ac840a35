//! Starts the daemon (`touchmark daemon`): from a directory to a running event
//! loop.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use touchmark_proto::Places;

use crate::Error;
use crate::config::Config;
use crate::failpoint;
use crate::life::systemd::{self, Manager};
use crate::life::{self, Lock, Sweep, private_directory, usable_directory};
use crate::log::{self, Target};
use crate::run::{Options, run};
use crate::socket::{Listener, Passed};
use crate::system::{inherited, process, signals};
use crate::time::Timeline;

/// The maximum time to wait until another daemon ends for one that the service
/// manager starts.
const GIVING_WAY: Duration = Duration::from_secs(10);

/// The interval between two tries to take the lock.
const AGAIN: Duration = Duration::from_millis(20);

/// How to run a daemon.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The workspace.
    pub workspace: PathBuf,
    /// Whether a client started the daemon, not the user. Such a daemon leaves
    /// the client's terminal, logs to a file, and exits when idle (LIFE-1).
    pub on_demand: bool,
    /// The user's configuration file; `None` for the usual one.
    pub config: Option<PathBuf>,
}

/// Runs the daemon of a workspace until it ends.
///
/// # Errors
/// [`Error`]. Its [`exit_code`](Error::exit_code) is the exit code of the
/// process: 1 if another daemon runs already (SEC-1).
pub fn main_daemon(options: DaemonOptions) -> Result<(), Error> {
    if options.on_demand {
        // The service manager of the client that started it does not concern
        // this daemon.
        return serve(options, None, Manager::default());
    }
    let passed = systemd::passed_socket()?;
    let waiting = passed.as_ref().and_then(|socket| socket.try_clone().ok());
    let manager = Manager::of_environment();
    let ended = serve(options, passed, manager.clone());
    match (ended, waiting) {
        (Err(error), Some(socket)) => {
            systemd::turn_away(&socket);
            let gone = matches!(
                &error,
                Error::Workspace { cause, .. } if cause.kind() == ErrorKind::NotFound
            );
            // This is no failure that another start would correct (LIFE-1).
            if gone {
                manager.nothing_to_do(&error.to_string());
                return Ok(());
            }
            Err(error)
        }
        (ended, _) => ended,
    }
}

fn serve(options: DaemonOptions, passed: Option<Passed>, manager: Manager) -> Result<(), Error> {
    let workspace = life::canonical_workspace(&options.workspace)?;
    let places = life::places(&workspace)?;
    let user_config = match &options.config {
        // A relative path must be resolved before the working directory
        // changes.
        Some(file) => Some(std::path::absolute(file).map_err(Error::io("find", file))?),
        None => None,
    };
    let configured = Config::of(&places, user_config.as_deref())?;
    let refused = configured.refused();
    let user_is_wrong = configured.user_is_wrong;
    let config = configured.config;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Hooks and guarded writes read files as well, each on a separate
        // thread.
        .max_blocking_threads(16)
        .build()
        .map_err(part("runtime"))?;
    {
        let _runtime = runtime.enter();
        signals::survive_file_size().map_err(part("signals"))?;
    }
    private_directory(&places.runtime)?;
    let lock = lock(&places, &workspace, passed.is_some())?;
    failpoint::pass("start: the lock is taken");
    usable_directory(&places.state)?;
    let umask = process::detach(options.on_demand);
    let inherited = if options.on_demand {
        inherited::leave()
    } else {
        Vec::new()
    };
    log::start(
        Target::choose(!options.on_demand),
        &places.state,
        &workspace,
    );
    for wrong in &configured.wrong {
        tracing::warn!("not in force: {wrong}");
    }
    process::raise_descriptor_limit(life::descriptors(config.connections));

    let ended = runtime.block_on(async {
        let terminal = !options.on_demand && std::io::stderr().is_terminal();
        let shutdown = signals::shutdown(terminal).map_err(part("signals"))?;
        let listener = match passed {
            Some(socket) => Listener::adopt(socket, &places.socket)?,
            None => Listener::bind(&places.socket)?,
        };
        failpoint::pass("start: the socket is there");
        tracing::info!(
            "pid {} serves {} at {}",
            std::process::id(),
            workspace.display(),
            places.socket.display()
        );
        let _until_the_end = sweep(&places, &config);
        let options = Options {
            workspace,
            places,
            config: std::sync::Arc::new(config),
            refused,
            user_is_wrong,
            user_config,
            on_demand: options.on_demand,
            manager,
            umask,
            inherited,
        };
        // The loop runs as a task: waking the future of `block_on` itself costs
        // a system call, even from the runtime's own thread.
        match tokio::spawn(run(listener, lock, options, shutdown)).await {
            Ok(ended) => ended,
            Err(died) => match died.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(cause) => Err(Error::Part {
                    part: "loop",
                    cause: cause.to_string(),
                }),
            },
        }
    });
    // A read that hangs on a network file system must not delay the exit.
    runtime.shutdown_background();
    if let Err(error) = &ended {
        tracing::error!("{error}");
    }
    ended
}

fn part(part: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::Part {
        part,
        cause: cause.to_string(),
    }
}

/// Takes the workspace's lock. If another daemon has it, returns an error; the
/// client of this second daemon mostly could not connect to the first. The
/// first daemon sees that the lock file was touched, and checks whether its
/// socket is still in place (LIFE-2). With `waits` (the service manager has
/// bound a socket in the place of the first daemon's), the function waits until
/// the first daemon sees that and ends.
fn lock(places: &Places, workspace: &Path, waits: bool) -> Result<Lock, Error> {
    let until = Instant::now() + GIVING_WAY;
    loop {
        match Lock::of(places, workspace) {
            Err(Error::AlreadyRunning { .. }) if waits && Instant::now() < until => {
                std::thread::sleep(AGAIN);
            }
            taken => return taken,
        }
    }
}

/// Starts to remove the state of daemons whose workspaces no longer exist, on
/// another thread. How long that state stays is set by the user's file only,
/// whatever repository this daemon serves (SEC-5).
fn sweep(places: &Places, config: &Config) -> Sweep {
    let keep = config
        .sessions_keep
        .max(config.versions_age)
        .max(config.recovery_age);
    // The age counts only time that this workspace's daemons have on record as
    // passed (LIM-3).
    let oldest = Timeline::open(&places.state, 0).before(keep);
    Sweep::start(places.clone(), UNIX_EPOCH + Duration::from_millis(oldest))
}
