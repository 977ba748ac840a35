//! `touchmark daemon`: the daemon in the foreground.

use std::path::PathBuf;

use clap::Args;
use touchmark_client::find::Workspace;
use touchmark_daemon::{DaemonOptions, main_daemon};

use crate::args::Global;
use crate::context::Context;
use crate::output::{Failure, Outcome};

/// The daemon in the foreground.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The user's configuration, in place of the usual file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Leave the terminal and end when idle: how clients start it
    #[arg(long, hide = true)]
    on_demand: bool,
}

pub(crate) fn run(options: Options, global: &Global) -> Outcome {
    let workspace = match &global.workspace {
        Some(directory) => directory.clone(),
        None => {
            let found: Workspace = Context::new(global.clone())?.workspace()?;
            found.root
        }
    };
    main_daemon(DaemonOptions {
        workspace,
        on_demand: options.on_demand,
        config: options.config,
    })
    .map_err(|error| Failure::Daemon {
        code: error.exit_code(),
        message: error.to_string(),
        hint: error.hint(),
    })
}
