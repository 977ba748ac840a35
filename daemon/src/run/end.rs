//! The daemon's end: all requests are answered, all answers written, all facts
//! stored, and no files left (LIFE-1).

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use touchmark_proto::{Error as Refusal, ErrorCode};

use super::Daemon;
use super::clients::Asked;
use crate::event::Event;
use crate::failpoint;
use crate::life::Lock;
use crate::socket::Listener;

/// How long the store and the clients may take for the remaining facts and
/// answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a daemon ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// The daemon exits, for this reason.
    Done(&'static str),
    /// The store has to be opened again, so the daemon starts again in this
    /// process (LOSS-3).
    Again,
}

impl Daemon {
    /// Ends the daemon. Returns what the next run needs, if the daemon starts
    /// again.
    pub(super) async fn end(
        mut self,
        mut events: UnboundedReceiver<Event>,
    ) -> Option<(Listener, Lock)> {
        let again = matches!(self.ending, Some(Ending::Again));
        match self.ending {
            Some(Ending::Again) => {
                tracing::info!("the store can be opened for writing: starting again")
            }
            Some(Ending::Done(why)) => {
                tracing::info!("ending: {why}");
                self.manager.stopping(why);
            }
            None => {}
        }
        let deadline = Instant::now() + PATIENCE;
        self.parts.searches.end();
        self.clients.end_calls();
        for event in self.clients.waiting.drain() {
            self.refuse(event);
        }
        self.close_turn();
        while (!again && (!self.outbox.is_empty() || self.clients.production.is_busy()))
            || self.engine.is_writing()
        {
            match timeout_at(deadline, events.recv()).await {
                Ok(Some(event @ Event::Ask { .. })) => self.refuse(event),
                // Results of writes and reads in progress still count.
                Ok(Some(
                    event @ (Event::Store(_)
                    | Event::Disconnected(_)
                    | Event::Written { .. }
                    | Event::Read { .. }
                    | Event::Look(_)
                    | Event::Produced { .. }
                    | Event::Answered { .. }),
                )) => {
                    self.take(event);
                    self.close_turn();
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.workspace.guard.look_at_all_moved();
        for (request, asked) in std::mem::take(&mut self.clients.asked) {
            self.clients.answer(asked, request, Err(ending()));
        }
        for peer in self.clients.peers.values() {
            peer.close();
        }
        while !self.clients.peers.is_empty() {
            match timeout_at(deadline, events.recv()).await {
                Ok(Some(Event::Disconnected(connection))) => {
                    self.clients.peers.remove(&connection);
                }
                Ok(Some(event @ Event::Look(_))) => self.take(event),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.end_telemetry(&mut events).await;
        let news = self.storage.next_snapshot.has_news()
            || self.storage.stamps_in_snapshot != self.engine.stamps_noted();
        if !again && news && self.storage.trouble.is_none() {
            self.snapshot();
        }
        self.workspace.time.keep();
        let Self {
            storage,
            disk,
            clients,
            options,
            fleet,
            ..
        } = self;
        // The others must not calculate with a daemon that ends.
        drop(fleet);
        failpoint::pass("end: about to close the store");
        storage.close();
        failpoint::pass("end: the store is closed");
        drop(disk);
        let _gone_already = std::fs::remove_dir_all(&options.places.fence);
        if again {
            // Clients that connect meanwhile wait.
            return Some((clients.listener, clients.lock));
        }
        // The socket is removed first, so that the next owner of the lock finds
        // no stale one.
        drop(clients.listener);
        failpoint::pass("end: the socket is gone");
        drop(clients.lock);
        failpoint::pass("end: the lock is gone");
        None
    }

    /// Refuses a request, since the daemon ends. Takes any other event.
    pub(super) fn refuse(&mut self, event: Event) {
        match event {
            Event::Ask {
                request,
                connection,
                ask,
                until,
            } => {
                let asked = Asked::new(connection, &ask, until);
                self.clients.answer(asked, request, Err(ending()));
            }
            event => self.take(event),
        }
    }
}

fn ending() -> Refusal {
    Refusal::new(ErrorCode::ShuttingDown, "the daemon is ending")
}
