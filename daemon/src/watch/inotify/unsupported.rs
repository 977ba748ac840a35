//! Systems without inotify: `notify` is used there.

use super::backend::{NoBackend, Sink};

/// Whether this system has inotify.
pub(super) const IS_HERE: bool = false;

pub(super) struct Inotify;

impl Inotify {
    /// Always fails.
    ///
    /// # Errors
    /// A sentence that inotify does not exist here.
    pub(super) fn new(_generation: u64, _sink: Sink) -> Result<NoBackend, String> {
        Err("inotify is Linux's".into())
    }
}
