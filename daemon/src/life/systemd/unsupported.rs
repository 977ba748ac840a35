//! Used where there is no systemd: no socket is passed, and nothing is
//! reported.

use std::time::Instant;

use crate::Error;
use crate::socket::Passed;

/// Returns no socket.
///
/// # Errors
/// None.
pub fn passed_socket() -> Result<Option<Passed>, Error> {
    Ok(None)
}

/// Does nothing: no connection waits on a socket that was not passed.
pub fn turn_away(_socket: &Passed) {}

/// The absent manager.
#[derive(Clone, Debug, Default)]
pub struct Manager;

impl Manager {
    /// Returns the absent manager.
    pub fn of_environment() -> Self {
        Self
    }

    /// Reports nothing.
    pub fn nothing_to_do(&self, _why: &str) {}
}

/// The loop's reports to the absent manager.
#[derive(Debug)]
pub(crate) struct ServiceReport;

impl ServiceReport {
    pub(crate) fn new(_manager: Manager) -> Self {
        Self
    }

    pub(crate) fn is_heard(&self) -> bool {
        false
    }

    pub(crate) fn turn(&mut self, _ready: bool, _status: String) {}

    pub(crate) fn due(&self) -> Option<Instant> {
        None
    }

    pub(crate) fn alive(&mut self, _now: Instant) {}

    pub(crate) fn reloading(&mut self) {}

    pub(crate) fn reloaded(&mut self) {}

    pub(crate) fn stopping(&self, _why: &str) {}
}
