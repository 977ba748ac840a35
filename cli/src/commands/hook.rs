//! `touchmark hook`: agents' hooks.

use clap::{Args, Subcommand};

use crate::commands::hook_settings;
use crate::context::Context;
use crate::output::Outcome;
use crate::settings::Action as Change;

/// Agents' hooks.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What to do
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write touchmark's hooks into an agent's settings; shows the change first
    Install(hook_settings::Options),
    /// Take touchmark's hooks out of an agent's settings; shows the change first
    Uninstall(hook_settings::Options),
}

pub(crate) fn run(context: &Context, options: &Options) -> Outcome {
    match &options.action {
        Action::Install(options) => hook_settings::run(context, options, Change::Install),
        Action::Uninstall(options) => hook_settings::run(context, options, Change::Uninstall),
    }
}
