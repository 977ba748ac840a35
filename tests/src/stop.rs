//! Ends threads of a scope together.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, also by a panic. A thread that runs until the
/// flag is set would otherwise keep a failed test in its scope for good.
#[derive(Debug)]
pub struct SetsOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
