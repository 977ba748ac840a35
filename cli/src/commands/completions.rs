//! `touchmark completions SHELL`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::output::Outcome;

/// A script of completions.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(options.shell, &mut command, "touchmark", &mut script);
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(())
}
