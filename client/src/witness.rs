//! The witness of a command (ATTR-3): the program that runs it, and the window
//! that its environment names.

use std::path::{Path, PathBuf};
use std::process::Command;

use touchmark_proto::Places;
use touchmark_proto::places::WITNESS_VARIABLE;

use crate::Workspace;

/// The name of the program that runs a command witnessed. It is installed next to
/// the other programs.
pub const WITNESS_BINARY: &str = "touchmark-witness";

/// Returns the name of the witness that sees this process, such as `c5`. `None` if
/// there is none, or if it is another workspace's.
pub fn witnessed_by(places: &Places) -> Option<String> {
    places.witness(Path::new(&std::env::var_os(WITNESS_VARIABLE)?))
}

/// Returns the path of the program that runs a command witnessed; `None` if it is
/// not installed next to the running program.
pub fn witness_program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.with_file_name(WITNESS_BINARY);
    program.is_file().then_some(program)
}

/// Returns the call of [`witness_program`] for the command window with this id.
/// What it runs follows: further options, `--`, and the command.
pub fn witnessed(witness: &Path, workspace: &Workspace, window: &str) -> Command {
    let ring = workspace.places.ring(window);
    let mut command = Command::new(witness);
    command
        .arg("--ring")
        .arg(&ring)
        .arg("--root")
        .arg(&workspace.root)
        .env(WITNESS_VARIABLE, ring);
    command
}
