//! Checks that the daemon can still be found at its socket's path (LIFE-2).

use std::time::{Duration, Instant};

use super::Daemon;
use super::end::Ending;
use crate::life::{Lock, private_directory};
use crate::socket::Listener;

/// The time that a process which has taken over the socket's name may need
/// until it listens. systemd removes the name, binds and listens, one after the
/// other.
const A_MOMENT: Duration = Duration::from_millis(50);

impl Daemon {
    /// Checks the names of the socket and the lock, and restores those that
    /// were removed. If another daemon or the service manager has replaced
    /// them, this daemon ends.
    pub(super) fn look_at_places(&mut self) {
        if self.clients.lock.is_in_place() && self.clients.listener.is_in_place() {
            if self.clients.mend_place_at.take().is_some() {
                // The name that came back may belong to another file.
                self.disk.watcher.watch_beside(&self.options.places);
            }
            return;
        }
        if self.ending.is_some() {
            return;
        }
        if self.clients.mend_place_at.is_none() {
            tracing::warn!("the socket or the lock was removed or replaced");
        }
        if let Err(error) = self.mend_places() {
            tracing::error!("cannot be mended: {error}");
            self.ending = Some(Ending::Done("clients can no longer find this daemon"));
        }
    }

    /// Restores the lock immediately, since another daemon could start
    /// meanwhile, and the socket a moment later.
    fn mend_places(&mut self) -> Result<(), crate::Error> {
        let places = &self.options.places;
        private_directory(&places.runtime)?;
        if !self.clients.lock.is_in_place() {
            self.clients.lock = Lock::of(places, &self.options.workspace)?;
        }
        self.disk.watcher.watch_beside(&self.options.places);
        if self.clients.listener.is_in_place() {
            return Ok(());
        }
        let now = Instant::now();
        if now < *self.clients.mend_place_at.get_or_insert(now + A_MOMENT) {
            return Ok(());
        }
        self.clients.mend_place_at = None;
        if self.clients.listener.is_taken_over() {
            // The other process answers new connections, so this daemon ends.
            self.ending = Some(Ending::Done("another listens in its place"));
            return Ok(());
        }
        let new = Listener::bind(&self.options.places.socket)?;
        let old = std::mem::replace(&mut self.clients.listener, new);
        for stream in old.waiting() {
            self.accepted(Ok(stream));
        }
        // From here on its loss is noticed. An earlier one is found at the next
        // look.
        self.disk.watcher.watch_beside(&self.options.places);
        if !self.clients.listener.is_in_place() {
            self.clients.mend_place_at = Some(now + A_MOMENT);
        }
        tracing::info!("bound again");
        Ok(())
    }
}
