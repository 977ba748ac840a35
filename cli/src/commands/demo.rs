//! `touchmark demo`: a tour with a real daemon.

use clap::Args;

use crate::context::Global;
use crate::output::Outcome;
use crate::system::terminal::is_terminal;
use crate::tour;

/// Give a tour in a temporary workspace.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Do not pause between steps
    #[arg(long)]
    fast: bool,
}

pub(crate) fn run(options: &Options, global: &Global) -> Outcome {
    tour::run(tour::Pace {
        pauses: is_terminal() && !options.fast && !global.quiet,
        steps: !global.quiet,
    })
}
