//! `touchmark completions SHELL`: prints a script with which a shell asks the
//! command itself for completions.

use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::output::{Failure, Outcome};

/// The script for bash. It replaces clap's, which splits words as readline
/// does.
const BASH: &str = include_str!("completions.bash");

/// Print the completion script of a shell.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.shell == Shell::Bash {
        return crate::output::line(BASH.trim_end());
    }
    let name = options.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| Failure::No(format!("there are no completions for {name}")))?;
    // The script calls the command by its name, so it uses the one that `PATH`
    // finds at that time.
    let mut script = Vec::new();
    shell.write_registration(
        "COMPLETE",
        "touchmark",
        "touchmark",
        "touchmark",
        &mut script,
    )?;
    std::io::Write::write_all(&mut std::io::stdout(), &script)?;
    Ok(())
}
