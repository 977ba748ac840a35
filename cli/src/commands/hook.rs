//! `touchmark hook`: agents' hooks.

use clap::{Args, Subcommand};

use crate::commands::{hook_event, hook_settings};
use crate::context::Context;
use crate::context::Global;
use crate::output::{Failure, Outcome};
use crate::settings::{Agent, Direction};

/// Install or remove an agent's hooks; also what the hooks run.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// The agent whose event is on standard input; the answer is printed
    #[arg(required = true)]
    agent: Option<Agent>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add touchmark's hooks to an agent's settings; shows the change first
    Install(hook_settings::Options),
    /// Remove touchmark's hooks from an agent's settings; shows the change
    /// first
    Uninstall(hook_settings::Options),
}

pub(crate) fn run(options: &Options, global: Global) -> Outcome {
    match (&options.action, options.agent) {
        (Some(Action::Install(options)), _) => {
            hook_settings::run(&Context::new(global)?, options, Direction::Install)
        }
        (Some(Action::Uninstall(options)), _) => {
            hook_settings::run(&Context::new(global)?, options, Direction::Uninstall)
        }
        (None, Some(agent)) => hook_event::run(agent, &global),
        (None, None) => Err(Failure::Usage(
            "whose event? See `touchmark hook --help`".into(),
        )),
    }
}
