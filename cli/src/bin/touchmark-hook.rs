//! The command `touchmark-hook AGENT`: what `touchmark hook AGENT` does, in a
//! program that is soon loaded. `touchmark setup` writes it into the settings of
//! agents.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let served = match (arguments.next(), arguments.next()) {
        (Some(agent), None) => touchmark_hook::serve(&agent, touchmark_hook::Options::default()),
        _ => None,
    };
    served.unwrap_or_else(|| {
        eprintln!("touchmark-hook: name one agent; `touchmark hook --help` lists them");
        // Agents take 2 for a refusal.
        ExitCode::FAILURE
    })
}
