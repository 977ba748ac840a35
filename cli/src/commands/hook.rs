//! `touchmark hook`: agents' hooks.

use clap::{Args, Subcommand};

use crate::args::Global;
use crate::commands::{hook_event, hook_settings};
use crate::context::Context;
use crate::output::Outcome;
use crate::settings::{Action as Change, Agent};

/// Agents' hooks.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// An event of Claude Code: standard input to standard output
    Claude,
    /// An event of Codex
    Codex,
    /// An event of Gemini CLI
    Gemini,
    /// An event of Cursor
    Cursor,
    /// An event of opencode, as its plug-in tells it
    Opencode,
    /// Write touchmark's hooks into an agent's settings; shows the change first
    Install(hook_settings::Options),
    /// Take touchmark's hooks out of an agent's settings; shows the change first
    Uninstall(hook_settings::Options),
}

pub(crate) fn run(options: &Options, global: Global) -> Outcome {
    let agent = match &options.action {
        Action::Claude => Agent::Claude,
        Action::Codex => Agent::Codex,
        Action::Gemini => Agent::Gemini,
        Action::Cursor => Agent::Cursor,
        Action::Opencode => Agent::Opencode,
        Action::Install(options) => {
            return hook_settings::run(&Context::new(global)?, options, Change::Install);
        }
        Action::Uninstall(options) => {
            return hook_settings::run(&Context::new(global)?, options, Change::Uninstall);
        }
    };
    hook_event::run(agent, &global)
}
