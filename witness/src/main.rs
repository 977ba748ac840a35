//! `touchmark-witness`: the program of the guardian and the supervisor. With
//! `run RING -- COMMAND` it is a launcher, for tests and measurements.

use std::process::ExitCode;

fn main() -> ExitCode {
    touchmark_witness::guardian(std::env::args_os().skip(1).collect())
}
