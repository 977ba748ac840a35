//! What the command uses of the daemon's crate, and the end of a daemon. No
//! other file names that crate.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use touchmark_daemon::DaemonOptions;
pub(crate) use touchmark_daemon::agent;
pub(crate) use touchmark_daemon::config;
pub(crate) use touchmark_daemon::doctor;
pub(crate) use touchmark_daemon::git::{Git, Limits, Object, Objects, WorkTree};
pub(crate) use touchmark_daemon::life::{Vanished, forget_vanished, kept, stored};
pub(crate) use touchmark_daemon::log::FILE as LOG_FILE;
pub(crate) use touchmark_daemon::off;
pub(crate) use touchmark_daemon::probe_witness;
use touchmark_daemon::{life, main_daemon};

use touchmark_client::blocking::Client;
use touchmark_client::proto::daemon::Shutdown;
use touchmark_client::start::wait_until_ended;
use touchmark_client::{Hello, Workspace, sockets};

use crate::context::{Context, hello};
use crate::output::{Failure, Outcome};

/// How long a daemon may take to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a daemon may take for the answer to a question that all are asked.
const ANSWER: Duration = Duration::from_secs(3);

/// Runs the daemon until it ends.
pub(crate) fn run(options: DaemonOptions) -> Outcome {
    main_daemon(options).map_err(failed)
}

/// Returns the workspace of a systemd unit's instance.
pub(crate) fn workspace_of_instance(key: &str) -> Outcome<PathBuf> {
    life::workspace_of_instance(key).map_err(failed)
}

/// Removes everything stored for a workspace whose daemon has exited. Returns
/// false if nothing was stored.
pub(crate) fn forget(workspace: &Workspace) -> Outcome<bool> {
    life::forget(&workspace.places, &workspace.root).map_err(failed)
}

/// Asks the workspace's daemon to end, and waits until it has. Returns `false`
/// if none ran.
pub(crate) fn end(workspace: &Workspace) -> Outcome<bool> {
    if workspace.is_asleep() {
        return Ok(false);
    }
    // Without `initialize`, so that a daemon of any protocol can be ended.
    let client = match workspace.connect_silent(&hello()) {
        Ok(client) => client,
        Err(error) if error.is_disconnected() => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match client.call(Shutdown {}) {
        // The daemon may exit before its answer is sent.
        Err(error) if !error.is_disconnected() => return Err(error.into()),
        _ => {}
    }
    drop(client);
    wait_until_ended(workspace, PATIENCE)?;
    Ok(true)
}

/// Connects to the daemons that run: those of all workspaces with `all`, else
/// that of this one. One that does not answer in time is left out.
pub(crate) fn running(workspace: &Workspace, context: &Context, all: bool) -> Vec<Client> {
    let hello = Hello {
        deadline: ANSWER,
        ..hello()
    };
    match all {
        true => {
            let sockets = sockets::sockets(&context.environment).into_iter();
            let open = sockets.map(|socket| Client::connect(&socket, &hello));
            open.flatten().collect()
        }
        false if workspace.is_running() => workspace.connect(&hello).into_iter().collect(),
        false => Vec::new(),
    }
}

fn failed(error: touchmark_daemon::Error) -> Failure {
    Failure::Coded {
        code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    }
}
