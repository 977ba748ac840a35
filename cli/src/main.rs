//! The `touchmark` command.

use std::process::ExitCode;

use clap::FromArgMatches as _;

mod args;
mod attest;
mod commands;
mod complete;
mod confirm;
mod context;
mod feed;
mod help;
mod hints;
mod hunks;
mod mcp;
mod output;
mod pager;
mod service;
mod settings;
#[cfg(test)]
mod snapshots;
mod style;
mod system;
mod table;
mod text;
mod timeline;
mod tour;
mod trace;
mod ui;
mod versions;

fn main() -> ExitCode {
    // Agents run hooks before and after every tool, so this is checked first.
    if let Some(code) = commands::hook_event::at_once(std::env::args_os().skip(1)) {
        return code;
    }
    // A shell requests completions with a variable. Without it this does
    // nothing.
    clap_complete::CompleteEnv::with_factory(help::command).complete();
    let parsed = help::command().try_get_matches();
    let arguments = match parsed.and_then(|found| args::Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version exit with 0, wrong use with 2. `run` uses 125,
            // since its exit code is the command's.
            let wrong = error.use_stderr();
            let _nobody_reads = error.print();
            return match wrong {
                false => ExitCode::SUCCESS,
                true if args::is_run(std::env::args_os().skip(1)) => ExitCode::from(125),
                true => ExitCode::from(2),
            };
        }
    };
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}
