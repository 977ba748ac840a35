//! What no other system tells in a way that is known here.

use std::io;
use std::time::Duration;

use touchmark_proto::{Error, ErrorCode};

use crate::system::process::{Placed, Process, Umask};

/// Says that it cannot be told: a command window ends with its connection or
/// its time then.
///
/// # Errors
/// Always.
pub(crate) fn process_end(_pid: u32) -> impl Future<Output = io::Result<()>> {
    std::future::ready(Err(io::ErrorKind::Unsupported.into()))
}

/// Not told.
pub(crate) fn and_above(_pid: u32) -> Vec<Process> {
    Vec::new()
}

/// Not told.
pub(crate) fn children(_pid: u32) -> Vec<Placed> {
    Vec::new()
}

/// Not told.
pub(crate) fn all() -> Vec<Placed> {
    Vec::new()
}

/// Not told.
pub(crate) fn runs_this_program(_pid: u32) -> bool {
    false
}

/// Not told.
pub(crate) fn environment_says(_pid: u32, _value: &str) -> bool {
    false
}

/// Ticks of ten milliseconds.
pub(crate) fn since(tick: u64) -> Duration {
    Duration::from_millis(tick.saturating_mul(10))
}

/// Ticks of ten milliseconds.
pub(crate) fn ticks(running: Duration) -> u64 {
    u64::try_from(running.as_millis()).unwrap_or(u64::MAX) / 10
}

/// Not told.
pub(crate) fn umask(_pid: u32) -> Option<Umask> {
    None
}

/// Says that it cannot be told: without it, a number might be another
/// process's by now.
///
/// # Errors
/// `invalidParams`, if there are any.
pub(crate) fn process_starts(processes: &[u32]) -> Result<Vec<(u32, Option<u64>)>, Error> {
    if processes.is_empty() {
        return Ok(Vec::new());
    }
    let message = "this system does not tell touchmark when a process was started";
    Err(Error::new(ErrorCode::InvalidParams, message).hint("leave `pid` out"))
}

/// Not told.
pub(crate) fn resident_bytes() -> u64 {
    0
}

/// Not told.
pub(crate) fn boot() -> Option<String> {
    None
}
