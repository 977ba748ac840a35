//! Where there is no inotify: `notify` watches.

use super::backend::{NoBackend, Sink};

/// Whether the system has it.
pub(super) const IS_HERE: bool = false;

pub(super) struct Inotify;

impl Inotify {
    /// # Errors
    /// Always.
    pub(super) fn new(_generation: u64, _sink: Sink) -> Result<NoBackend, String> {
        Err("inotify is Linux's".into())
    }
}
