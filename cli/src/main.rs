//! The command `touchmark`.

use std::process::ExitCode;

use clap::Parser as _;

mod args;
mod commands;
mod context;
mod feed;
mod output;
mod style;
mod text;
mod tour;

fn main() -> ExitCode {
    // Wrong use ends here with code 2, help and version with 0.
    let arguments = args::Arguments::parse();
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}
