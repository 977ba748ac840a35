//! `touchmark daemon`: runs the daemon in the foreground.

mod inherited;

use std::path::PathBuf;

use clap::Args;
use touchmark_client::find::Workspace;
use touchmark_client::proto::Places;
pub(crate) use touchmark_daemon::doctor;
pub(crate) use touchmark_daemon::fleet_limits;
pub(crate) use touchmark_daemon::git::{Git, Limits, Object, Objects, WorkTree};
pub(crate) use touchmark_daemon::life::{Vanished, stored};
pub(crate) use touchmark_daemon::log::FILE as LOG_FILE;
use touchmark_daemon::{DaemonOptions, life, main_daemon};
pub(crate) use touchmark_daemon::{Unanswered, place};

use crate::args::Global;
use crate::context::Context;
use crate::output::{Failure, Outcome};

/// Run the daemon in the foreground.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The user's configuration file, instead of the default one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Detach from the terminal and exit when idle; clients start the daemon
    /// this way
    #[arg(long, hide = true)]
    on_demand: bool,
    /// The key of the workspace, in a systemd unit's instance
    #[arg(long, hide = true, value_name = "KEY", conflicts_with_all = ["workspace", "on_demand"])]
    instance: Option<String>,
    /// Only the three standard streams are open
    #[arg(long, hide = true)]
    closed: bool,
}

pub(crate) fn run(options: Options, global: &Global) -> Outcome {
    if options.on_demand && !options.closed {
        inherited::close();
    }
    let workspace = match (&options.instance, &global.workspace) {
        (Some(key), _) => life::workspace_of_instance(key).map_err(failed)?,
        (None, Some(directory)) => directory.clone(),
        (None, None) => {
            let found: Workspace = Context::new(global.clone())?.workspace()?;
            found.root
        }
    };
    main_daemon(DaemonOptions {
        workspace,
        on_demand: options.on_demand,
        config: options.config,
    })
    .map_err(failed)
}

/// Removes everything stored for a workspace whose daemon has exited. Returns
/// false if nothing was stored.
pub(crate) fn forget(workspace: &Workspace) -> Outcome<bool> {
    life::forget(&workspace.places, &workspace.root).map_err(failed)
}

/// Removes what is stored for other workspaces that no longer exist.
pub(crate) fn forget_vanished(own: &Places, recovered: bool) -> Vanished {
    life::forget_vanished(own, recovered)
}

/// Returns the number of recovered contents: those of files that guarded writes
/// replaced.
pub(crate) fn kept(places: &Places) -> usize {
    life::kept(places)
}

fn failed(error: touchmark_daemon::Error) -> Failure {
    Failure::Daemon {
        code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    }
}
