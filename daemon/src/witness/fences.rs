//! Fences for reads while commands are witnessed (ATTR-3). A thread that has read
//! a file passes them before it reports the content. So the loop finds in the
//! rings all that happened to the file before it was read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use touchmark_engine::witnesses::Seen;

/// How long a witness may take to record what has happened. Without it, what the
/// marks explain counts as likely.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a witness that did not answer is not asked again.
const PAUSE: Duration = Duration::from_secs(2);

/// The rings of the witnesses that windows need, for all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    rings: Arc<Mutex<BTreeMap<Seen, PathBuf>>>,
    /// Witnesses that did not answer, and until when they are not asked. Locked
    /// while one is asked: one thread at a time may.
    silent: Arc<Mutex<BTreeMap<Seen, Instant>>>,
}

impl Fences {
    /// Says which rings there are.
    pub(super) fn set(&self, rings: BTreeMap<Seen, PathBuf>) {
        *lock(&self.rings) = rings;
    }

    /// Returns whether no window is witnessed.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.rings).is_empty()
    }

    /// Has each witness record all that has happened until now.
    pub(crate) fn pass(&self) {
        let rings = lock(&self.rings).clone();
        if rings.is_empty() {
            return;
        }
        let mut silent = lock(&self.silent);
        silent.retain(|seen, until| rings.contains_key(seen) && Instant::now() < *until);
        for (seen, ring) in rings {
            if silent.contains_key(&seen) {
                continue;
            }
            match touchmark_witness::fence(&ring, PATIENCE) {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!("a witness does not answer");
                    silent.insert(seen, Instant::now() + PAUSE);
                }
                Err(error) => tracing::debug!("{}: {error}", ring.display()),
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
