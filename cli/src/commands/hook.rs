//! `touchmark hook`: agents' hooks.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::commands::hook_settings;
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

/// Runs the command as agents call it, without parsing the whole command line.
/// Returns `None` for any other command line.
pub(crate) fn at_once(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != "hook" {
        return None;
    }
    touchmark_hook::called(&arguments.collect::<Vec<_>>())
}

pub(crate) fn run(options: &Options, global: Global) -> Outcome {
    match (&options.action, options.agent) {
        (Some(Action::Install(options)), _) => {
            hook_settings::run(&Context::new(global)?, options, Direction::Install)
        }
        (Some(Action::Uninstall(options)), _) => {
            hook_settings::run(&Context::new(global)?, options, Direction::Uninstall)
        }
        (None, Some(agent)) => {
            let options = touchmark_hook::Options {
                workspace: global.workspace.as_deref(),
                no_start: global.no_start,
            };
            let _always_0_unless_the_daemon_says_otherwise =
                touchmark_hook::serve(agent.name(), options);
            Ok(())
        }
        (None, None) => Err(Failure::Usage(
            "whose event? See `touchmark hook --help`".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_agents_own_call_takes_the_short_way() {
        let words = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            words.into_iter()
        };
        assert!(at_once(words("status")).is_none());
        assert!(at_once(words("hook install")).is_none());
        assert!(at_once(words("hook claude --help")).is_none());
        assert!(at_once(words("hook")).is_none());
    }
}
