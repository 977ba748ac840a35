//! `touchmark daemon`: runs the daemon in the foreground.

mod inherited;

use std::path::PathBuf;

use clap::Args;

use crate::allocator;
use crate::context::{Context, Global};
use crate::daemon::{self, DaemonOptions};
use crate::output::Outcome;

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

pub(crate) fn run(options: Options, global: Global) -> Outcome {
    allocator::give_back_when_idle();
    if options.on_demand && !options.closed {
        inherited::close();
    }
    let workspace = match (&options.instance, &global.workspace) {
        (Some(key), _) => daemon::workspace_of_instance(key)?,
        (None, Some(directory)) => directory.clone(),
        (None, None) => Context::new(global)?.workspace()?.root,
    };
    daemon::run(DaemonOptions {
        workspace,
        on_demand: options.on_demand,
        config: options.config,
    })
}
