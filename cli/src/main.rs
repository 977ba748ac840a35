//! The command `touchmark`.

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
mod hunks;
mod mcp;
mod output;
mod pager;
mod service;
mod settings;
mod style;
mod system;
mod text;
mod tour;
mod trace;
mod versions;

fn main() -> ExitCode {
    // Agents run it before and after every tool: nothing else comes first.
    if let Some(code) = commands::hook_event::at_once(std::env::args_os().skip(1)) {
        return code;
    }
    // A shell that completes asks by a variable; else nothing happens.
    clap_complete::CompleteEnv::with_factory(help::command).complete();
    let parsed = help::command().try_get_matches();
    let arguments = match parsed.and_then(|found| args::Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version with 0, wrong use with 2; of `run`, whose
            // exit code is the command's, with 125.
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
