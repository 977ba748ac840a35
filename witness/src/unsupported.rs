//! The same interface where there is no witness.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use crate::marks::Refusal;

/// What [`run`] needs to start a command.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The ring. Nothing is written into it here.
    pub ring: PathBuf,
    /// The directories below which there would be marks.
    pub roots: Vec<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Says nothing on the standard error.
    pub quiet: bool,
}

/// Whether a file is open for writing or mapped so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// No process of the tree holds it.
    No,
    /// This process does.
    By(u32),
    /// It is not known.
    Unknown,
}

/// Makes no ring.
///
/// # Errors
/// Always `Unsupported`.
pub fn create(_path: &Path, _capacity: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns no device.
///
/// # Errors
/// Always `Unsupported`.
pub fn device(_path: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns `Unknown` for each file.
pub fn holders(_ancestors: &[u32], files: &[(u64, u64)]) -> Vec<Held> {
    vec![Held::Unknown; files.len()]
}

/// Becomes the command, unwitnessed. Returns the status to exit with if that is
/// impossible: 127 if there is no such program, else 126.
pub fn run(launch: &Launch) -> u8 {
    let Some((program, arguments)) = launch.command.split_first() else {
        return 127;
    };
    if !launch.quiet {
        let why = Refusal::Unsupported;
        eprintln!("touchmark-witness: the command runs unwitnessed: {why}");
    }
    let error = std::process::Command::new(program).args(arguments).exec();
    eprintln!("touchmark-witness: {}: {error}", program.display());
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}
