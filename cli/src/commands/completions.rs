//! `touchmark completions SHELL`: a script by which a shell asks the command
//! itself for what it completes.

use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::output::{Failure, Outcome};

/// For bash, in the place of clap's, which takes the words as readline cuts
/// them.
const BASH: &str = include_str!("completions.bash");

/// A script of completions.
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
    // Of the command it finds by its name, whichever that is then.
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
