//! The command `touchmark-hook AGENT`: what `touchmark hook AGENT` does, in a
//! program that is soon loaded. `touchmark setup` writes it into the settings of
//! agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    touchmark_hook::called(&arguments).unwrap_or_else(|| {
        eprintln!("touchmark-hook: name one agent; `touchmark hook --help` lists them");
        // Agents take 2 for a refusal.
        ExitCode::FAILURE
    })
}
