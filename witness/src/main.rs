//! `touchmark-witness --ring FILE --root DIRECTORY... -- COMMAND ARGUMENT...`

use std::ffi::OsString;
use std::process::ExitCode;

use touchmark_witness::{Launch, run};

const USAGE: &str = "\
usage: touchmark-witness --ring FILE [--root DIRECTORY]... [--quiet] -- COMMAND [ARGUMENT]...

Runs COMMAND and writes marks of what its processes may write into FILE.
The exit status is COMMAND's; 125 if these arguments are wrong.";

/// The exit status for wrong arguments, as of `env` and `timeout`.
const WRONG: u8 = 125;

fn main() -> ExitCode {
    let status = match parse(std::env::args_os().skip(1)) {
        Some(launch) => run(&launch),
        None => {
            eprintln!("{USAGE}");
            WRONG
        }
    };
    ExitCode::from(status)
}

/// Returns what to run; `None` if the arguments are wrong.
fn parse(mut arguments: impl Iterator<Item = OsString>) -> Option<Launch> {
    let (mut ring, mut roots, mut quiet) = (None, Vec::new(), false);
    loop {
        let argument = arguments.next()?;
        match argument.to_str()? {
            "--ring" => ring = Some(arguments.next()?.into()),
            "--root" => roots.push(arguments.next()?.into()),
            "--quiet" => quiet = true,
            "--" => break,
            _ => return None,
        }
    }
    let command: Vec<OsString> = arguments.collect();
    let ring = ring.filter(|_| !command.is_empty())?;
    Some(Launch {
        ring,
        roots,
        command,
        quiet,
    })
}
