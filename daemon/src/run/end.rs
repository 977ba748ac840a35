//! The end: nothing asked is left without an answer, nothing said unwritten,
//! nothing recorded unstored, and nothing left behind (LIFE-1).

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use touchmark_proto::{Error as Refusal, ErrorCode};

use super::Daemon;
use crate::event::Event;
use crate::failpoint;
use crate::life::Lock;
use crate::socket::Listener;

/// How long store and clients may take to take what is left.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a daemon's life ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// For good, and why.
    Done(&'static str),
    /// The store is to be opened again, so another life begins (LOSS-3).
    Again,
}

impl Daemon {
    /// Ends. Returns what the next life goes on with, if there is to be one.
    pub(super) async fn end(
        mut self,
        mut events: UnboundedReceiver<Event>,
    ) -> Option<(Listener, Lock)> {
        let again = matches!(self.ending, Some(Ending::Again));
        match self.ending {
            Some(Ending::Again) => tracing::info!("the store is opened again: beginning anew"),
            Some(Ending::Done(why)) => {
                tracing::info!("ending: {why}");
                self.manager.stopping(why);
            }
            None => {}
        }
        let deadline = Instant::now() + PATIENCE;
        self.searches.end();
        self.end_hooks();
        self.close_turn();
        while (!again && !self.outbox.is_empty()) || self.engine.is_writing() {
            match timeout_at(deadline, events.recv()).await {
                // Whoever asks now is refused below.
                Ok(Some(Event::Ask {
                    request,
                    connection,
                    ..
                })) => self.refuse(connection, request, ending()),
                // What is being written is told.
                Ok(Some(
                    event @ (Event::Store(_)
                    | Event::Disconnected(_)
                    | Event::Written { .. }
                    | Event::Read { .. }
                    | Event::Answered { .. }),
                )) => {
                    self.take(event);
                    self.close_turn();
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.guard.look_at_all_moved();
        for (request, asked) in std::mem::take(&mut self.asked) {
            self.refuse(asked.connection, request, ending());
        }
        for peer in self.peers.values() {
            peer.close();
        }
        while !self.peers.is_empty() {
            match timeout_at(deadline, events.recv()).await {
                Ok(Some(Event::Disconnected(connection))) => {
                    self.peers.remove(&connection);
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        let news =
            self.next_snapshot.has_news() || self.stamps_in_snapshot != self.engine.stamps_noted();
        if !again && news && self.storage_trouble.is_none() {
            self.snapshot();
        }
        self.time.keep();
        let Self {
            store,
            log,
            watcher,
            listener,
            lock,
            options,
            ..
        } = self;
        drop(log);
        failpoint::pass("end: about to close the store");
        store.close();
        failpoint::pass("end: the store is closed");
        drop(watcher);
        let _gone_already = std::fs::remove_dir_all(&options.places.fence);
        if again {
            // Who connects meanwhile waits.
            return Some((listener, lock));
        }
        // The socket first: whoever gets the lock finds no stale one.
        drop(listener);
        failpoint::pass("end: the socket is gone");
        drop(lock);
        failpoint::pass("end: the lock is gone");
        None
    }
}

fn ending() -> Refusal {
    Refusal::new(ErrorCode::ShuttingDown, "the daemon is ending")
}
