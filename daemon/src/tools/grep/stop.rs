//! When a search must stop before it is done.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// A signal to stop, or a moment. Clones share the signal.
#[derive(Clone, Debug)]
pub struct Stop {
    said: Arc<AtomicBool>,
    told: Arc<Notify>,
    at: Instant,
}

impl Stop {
    /// Returns a signal that is due at a moment, or at [`Stop::say`] if that
    /// comes earlier.
    pub fn at(moment: Instant) -> Self {
        Self {
            said: Arc::default(),
            told: Arc::default(),
            at: moment,
        }
    }

    /// Gives the signal to stop.
    pub fn say(&self) {
        self.said.store(true, Ordering::Relaxed);
        self.told.notify_one();
    }

    /// Waits until it is time to stop.
    pub async fn due(&self) {
        tokio::select! {
            () = self.told.notified() => {}
            () = tokio::time::sleep_until(self.at.into()) => {}
        }
    }

    /// Returns whether the signal was given.
    pub fn is_said(&self) -> bool {
        self.said.load(Ordering::Relaxed)
    }

    /// Returns whether it is time to stop.
    pub fn is_due(&self) -> bool {
        self.is_said() || Instant::now() >= self.at
    }
}

/// A reader that returns an error when it is time to stop, so that one large
/// file does not delay the end of its search.
pub(super) struct Stoppable<'a, R> {
    inner: R,
    stop: &'a Stop,
}

impl<'a, R> Stoppable<'a, R> {
    pub(super) fn new(inner: R, stop: &'a Stop) -> Self {
        Self { inner, stop }
    }
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_due() {
            return Err(io::Error::other("the search was ended"));
        }
        self.inner.read(buffer)
    }
}
