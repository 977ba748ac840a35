//! When a search is to end before it is done.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::Notify;

/// Somebody's word that nobody waits any more, or a moment. Clones share the
/// word.
#[derive(Clone, Debug)]
pub struct Stop {
    said: Arc<AtomicBool>,
    told: Arc<Notify>,
    at: Instant,
}

impl Stop {
    /// At a moment, unless [`Stop::say`] comes before it.
    pub fn at(moment: Instant) -> Self {
        Self {
            said: Arc::default(),
            told: Arc::default(),
            at: moment,
        }
    }

    /// Now.
    pub fn say(&self) {
        self.said.store(true, Ordering::Relaxed);
        self.told.notify_one();
    }

    /// Comes back when it is time. For one who waits.
    pub async fn due(&self) {
        tokio::select! {
            () = self.told.notified() => {}
            () = tokio::time::sleep_until(self.at.into()) => {}
        }
    }

    /// Whether it is time.
    pub fn is_due(&self) -> bool {
        self.said.load(Ordering::Relaxed) || Instant::now() >= self.at
    }
}

/// A file that cannot be read on when it is time to stop, so that one large
/// file does not outlast its search.
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
