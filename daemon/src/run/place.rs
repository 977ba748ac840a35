//! Whether the daemon can still be found where it says it is (LIFE-2).

use super::Daemon;
use super::end::Ending;
use crate::life::{Lock, private_directory};
use crate::socket::Listener;

impl Daemon {
    /// Looks at the socket's and the lock's names, and mends what is gone.
    /// Where another daemon has taken the place, this one ends.
    pub(super) fn look_at_places(&mut self) {
        if self.lock.is_in_place() && self.listener.is_in_place() {
            return;
        }
        if self.ending.is_some() {
            return;
        }
        tracing::warn!("the socket or the lock was removed or replaced");
        if let Err(error) = self.mend_places() {
            tracing::error!("cannot be mended: {error}");
            self.ending = Some(Ending::Done("nobody can find this daemon any more"));
        }
    }

    fn mend_places(&mut self) -> Result<(), crate::Error> {
        let places = &self.options.places;
        private_directory(&places.runtime)?;
        if !self.lock.is_in_place() {
            self.lock = Lock::take(&places.lock, &places.socket, &self.options.workspace)?;
        }
        if !self.listener.is_in_place() {
            let old = std::mem::replace(&mut self.listener, Listener::bind(&places.socket)?);
            for stream in old.waiting() {
                self.accepted(Ok(stream));
            }
        }
        self.watcher.watch_beside(&self.options.places.runtime);
        tracing::info!("bound again");
        Ok(())
    }
}
