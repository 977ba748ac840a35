//! `touchmark daemon`: from a directory to a running loop.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use touchmark_proto::Places;

use crate::Error;
use crate::boundary;
use crate::config::Config;
use crate::life::{self, Lock, Sweep, private_directory, usable_directory};
use crate::log::{self, Target};
use crate::run::{Options, run};
use crate::socket::Listener;

/// How to run a daemon.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The workspace.
    pub workspace: PathBuf,
    /// Started by a client rather than by the user: leaves the starter's
    /// terminal, logs into a file, ends when idle (LIFE-1).
    pub on_demand: bool,
    /// The user's configuration, in place of the usual file.
    pub config: Option<PathBuf>,
}

/// Runs the daemon of a workspace to its end.
///
/// # Errors
/// [`Error`]; its [`exit_code`](Error::exit_code) is the process's, 1 for a
/// second starter (SEC-1).
pub fn main_daemon(options: DaemonOptions) -> Result<(), Error> {
    let workspace = life::canonical_workspace(&options.workspace)?;
    let places = life::places(&workspace)?;
    let user_config = match &options.config {
        // Before the working directory is left.
        Some(file) => Some(std::path::absolute(file).map_err(Error::io("find", file))?),
        None => None,
    };
    let config = Config::of(&places, user_config.as_deref())?;
    private_directory(&places.runtime)?;
    // A second starter, who mostly could not connect to the first daemon, ends
    // here; the first one sees the lock being touched and looks whether its
    // socket is in its place (LIFE-2).
    let lock = Lock::take(&places.lock, &places.socket, &workspace)?;
    boundary::pass("start: the lock is taken");
    usable_directory(&places.state)?;
    life::detach(options.on_demand);
    log::start(Target::choose(!options.on_demand), &places.state);
    life::raise_descriptor_limit(life::descriptors(config.connections));

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Large files are hashed beside the loop, but not on every core.
        .max_blocking_threads(2)
        .build()
        .map_err(|cause| Error::Part {
            part: "runtime",
            cause: cause.to_string(),
        })?;
    let ended = runtime.block_on(async {
        let shutdown = shutdown_signals(!options.on_demand && std::io::stderr().is_terminal())?;
        let listener = Listener::bind(&places.socket)?;
        boundary::pass("start: the socket is there");
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
            config,
            user_config,
            on_demand: options.on_demand,
        };
        // As a task: what wakes the future of `block_on` itself wakes the
        // whole runtime by a system call, even from its own thread.
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
    // A read that hangs in a network's file system must not hold up the end.
    runtime.shutdown_background();
    if let Err(error) = &ended {
        tracing::error!("{error}");
    }
    ended
}

/// Tidies up after daemons whose workspaces are gone, aside.
fn sweep(places: &Places, config: &Config) -> Sweep {
    let keep = config
        .sessions_keep
        .max(config.versions_age)
        .max(config.recovery_age);
    Sweep::start(places.clone(), Duration::from_millis(keep))
}

/// SIGTERM, SIGINT or SIGQUIT; on a terminal SIGHUP as well, which says that
/// the terminal is closed.
fn shutdown_signals(terminal: bool) -> Result<impl Future<Output = ()> + use<>, Error> {
    let on = |kind| {
        signal(kind).map_err(|cause| Error::Part {
            part: "signals",
            cause: cause.to_string(),
        })
    };
    let mut terminate = on(SignalKind::terminate())?;
    let mut interrupt = on(SignalKind::interrupt())?;
    let mut quit = on(SignalKind::quit())?;
    let mut hangup = on(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
            _ = hangup.recv(), if terminal => {}
        }
    })
}
