//! Tests whether commands can be witnessed on this machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use touchmark_witness::{Reader, Record, create};

use super::CAPACITY;

/// How long the witness may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a command below the witness, which is this program.
///
/// # Errors
/// Why commands cannot be witnessed, for people.
pub fn probe(program: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let directory = tempfile::tempdir().map_err(failed)?;
    let ring = directory.path().join("ring");
    create(&ring, CAPACITY).map_err(failed)?;
    let mut reader = Reader::open(&ring).map_err(failed)?;
    let ran = Command::new(program)
        .arg("--ring")
        .arg(&ring)
        .args(["--quiet", "--", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(failed)?;
    if !ran.success() {
        return Err(format!("a command below it ended with {ran}"));
    }
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match reader.next().map_err(|error| error.to_string())? {
            Some((_, Record::Holders { .. })) => return Ok(()),
            Some((_, Record::Refused(why))) => return Err(why.to_string()),
            Some(_) => {}
            None => std::thread::yield_now(),
        }
    }
    Err("it did not begin".to_owned())
}
