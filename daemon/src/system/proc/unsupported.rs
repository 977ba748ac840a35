//! Used on systems other than Linux, where these facts about processes are not
//! available in a known way.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use touchmark_proto::{Error, ErrorCode};

use crate::system::process::{Placed, Process, Umask};

/// Returns an error, since the end of a process cannot be observed. A command
/// window then ends with its connection or by its deadline.
///
/// # Errors
/// Always.
pub(crate) fn process_end(_pid: u32) -> impl Future<Output = io::Result<()>> {
    std::future::ready(Err(io::ErrorKind::Unsupported.into()))
}

/// Does nothing.
pub(crate) fn limit_memory(_pid: u32, _bytes: u64) {}

/// Returns no process.
pub(crate) fn and_above(_pid: u32) -> Vec<Process> {
    Vec::new()
}

/// Returns no process.
pub(crate) fn placed(_pid: u32) -> Option<Placed> {
    None
}

/// Returns no process.
pub(crate) fn children(_pid: u32) -> Vec<Placed> {
    Vec::new()
}

/// Returns no process.
pub(crate) fn all() -> Vec<Placed> {
    Vec::new()
}

/// Returns the same id: there are no namespaces of processes.
pub(crate) fn known_as(pid: u32, _to: u32) -> Option<u32> {
    Some(pid)
}

/// Returns nothing.
pub(crate) fn variable(_pid: u32, _name: &str) -> Option<OsString> {
    None
}

/// Returns false.
pub(crate) fn is_witness_or_ends(_pid: u32) -> bool {
    false
}

/// Returns false.
pub(crate) fn runs_this_program(_pid: u32) -> bool {
    false
}

/// Returns nothing.
pub(crate) fn command_line(_pid: u32) -> Vec<String> {
    Vec::new()
}

/// Returns nothing.
pub(crate) fn environment(_pid: u32) -> Vec<u8> {
    Vec::new()
}

/// Returns false.
pub(crate) fn environment_says(_pid: u32, _value: &str) -> bool {
    false
}

/// Returns the uptime at a tick; a tick is ten milliseconds.
pub(crate) fn since(tick: u64) -> Duration {
    Duration::from_millis(tick.saturating_mul(10))
}

/// Returns the tick at an uptime; a tick is ten milliseconds.
pub(crate) fn ticks(running: Duration) -> u64 {
    u64::try_from(running.as_millis()).unwrap_or(u64::MAX) / 10
}

/// Returns `None`.
pub(crate) fn umask(_pid: u32) -> Option<Umask> {
    None
}

/// Returns an error, since without a start time an id might belong to another
/// process by now.
///
/// # Errors
/// `invalidParams`, if `processes` is not empty.
pub(crate) fn process_starts(processes: &[u32]) -> Result<Vec<(u32, Option<u64>)>, Error> {
    if processes.is_empty() {
        return Ok(Vec::new());
    }
    let message = "this system does not tell touchmark when a process was started";
    Err(Error::new(ErrorCode::InvalidParams, message).hint("leave `pid` out"))
}

/// How much memory a process uses, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The resident memory.
    pub(crate) resident: u64,
    /// The part of it that is shared with no file.
    pub(crate) private: u64,
}

/// Returns zeros: unknown.
pub(crate) fn memory() -> Memory {
    Memory::default()
}

/// Returns `None`.
pub(crate) fn boot() -> Option<String> {
    None
}
