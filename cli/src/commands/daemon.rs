//! `touchmark daemon`: the daemon in the foreground.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use touchmark_client::find::Workspace;
use touchmark_client::proto::Places;
pub(crate) use touchmark_daemon::doctor;
pub(crate) use touchmark_daemon::life::Vanished;
pub(crate) use touchmark_daemon::log::FILE as LOG_FILE;
use touchmark_daemon::{DaemonOptions, life, main_daemon};

use crate::args::Global;
use crate::context::Context;
use crate::output::{Failure, Outcome};

/// The first descriptor after the standard streams.
const FIRST_OTHER: i32 = 3;

/// The daemon in the foreground.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The user's configuration, in place of the usual file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave the terminal and end when idle: how clients start it
    #[arg(long, hide = true)]
    on_demand: bool,
    /// The workspace of a systemd unit's instance
    #[arg(long, hide = true, value_name = "KEY", conflicts_with_all = ["workspace", "on_demand"])]
    instance: Option<String>,
    /// Nothing but the three standard streams is open
    #[arg(long, hide = true)]
    closed: bool,
}

pub(crate) fn run(options: Options, global: &Global) -> Outcome {
    if options.on_demand && !options.closed {
        close_inherited();
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

/// Removes everything stored of a workspace whose daemon has ended; false if
/// there was nothing.
pub(crate) fn forget(workspace: &Workspace) -> Outcome<bool> {
    life::forget(&workspace.places, &workspace.root).map_err(failed)
}

/// Removes what is stored of workspaces that no longer exist, but for this one.
pub(crate) fn forget_vanished(own: &Places, recovered: bool) -> Vanished {
    life::forget_vanished(own, recovered)
}

/// How many contents are kept of files that guarded writes replaced.
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

/// Closes what was inherited beyond the standard streams, and comes back as
/// the same process. An agent's harness may leak a pipe into the commands it
/// runs and wait for its end: it would wait for this daemon's (LIFE-1).
fn close_inherited() {
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // Comes back only if it failed; a daemon with a pipe too many is better
    // than none.
    let _failed = Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--closed")
        .exec();
}
