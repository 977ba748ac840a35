//! Where there is no systemd: nothing is passed, nobody is told anything.

use std::time::Instant;

use crate::Error;
use crate::socket::Passed;

/// None.
///
/// # Errors
/// None here.
pub fn passed_socket() -> Result<Option<Passed>, Error> {
    Ok(None)
}

/// Nothing waits on a socket that was not passed.
pub fn turn_away(_socket: &Passed) {}

/// Nobody.
#[derive(Clone, Debug, Default)]
pub struct Manager;

impl Manager {
    /// Nobody.
    pub fn of_environment() -> Self {
        Self
    }

    /// Nobody is told.
    pub fn nothing_to_do(&self, _why: &str) {}
}

/// What the loop would tell a manager.
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
