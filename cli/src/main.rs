//! The `touchmark` command.

use std::process::ExitCode;

use clap::FromArgMatches as _;

#[cfg_attr(not(target_os = "linux"), path = "allocator/fallback.rs")]
mod allocator;
mod around;
mod attest;
mod blame;
mod checkpoints;
mod commands;
mod complete;
mod confirm;
mod context;
mod daemon;
mod editor;
mod feed;
mod findings;
mod help;
mod hints;
mod hunks;
mod likely;
mod lsp;
mod mcp;
mod moments;
mod off;
mod output;
mod pager;
mod progress;
mod project;
#[cfg(test)]
#[path = "../../fuzz/seeds.rs"]
mod seeds;
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
mod undone;
mod versions;
mod wire;
mod witness;

fn main() -> ExitCode {
    // Agents run hooks before and after every tool, so this is checked first.
    if let Some(code) = commands::hook::at_once(std::env::args_os().skip(1)) {
        return code;
    }
    // A shell requests completions with a variable. Without it this does
    // nothing.
    clap_complete::CompleteEnv::with_factory(commands::definition).complete();
    let parsed = commands::definition().try_get_matches();
    let arguments = match parsed.and_then(|found| commands::Arguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(mut error) => {
            commands::suggest(&mut error);
            // Help and version exit with 0, wrong use with 2. `run` uses 125,
            // since its exit code is the command's.
            let wrong = error.use_stderr();
            let _output_is_closed = error.print();
            return match wrong {
                false => ExitCode::SUCCESS,
                true if commands::is_run(std::env::args_os().skip(1)) => ExitCode::from(125),
                true => ExitCode::from(2),
            };
        }
    };
    let outcome = commands::run(arguments);
    progress::end();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}
