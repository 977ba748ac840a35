//! The end: nothing asked is left without an answer, nothing said unwritten,
//! nothing recorded unstored, and nothing left behind (LIFE-1).

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};
use touchmark_proto::{Error as Refusal, ErrorCode};

use super::Daemon;
use crate::Error;
use crate::event::Event;

/// How long store and clients may take to take what is left.
const PATIENCE: Duration = Duration::from_secs(3);

impl Daemon {
    pub(super) async fn end(mut self, mut events: UnboundedReceiver<Event>) -> Result<(), Error> {
        tracing::info!("ending: {}", self.ending.unwrap_or_default());
        let deadline = Instant::now() + PATIENCE;
        self.searches.end();
        self.close_turn();
        while !self.outbox.is_empty() || self.engine.is_writing() {
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
        self.guard.look_again(None);
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
        if self.facts_since_snapshot > 0 && self.storage_trouble.is_none() {
            self.snapshot();
        }
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
        store.close();
        drop(watcher);
        let _gone_already = std::fs::remove_dir_all(&options.places.fence);
        // The socket first: whoever gets the lock finds no stale one.
        drop(listener);
        drop(lock);
        Ok(())
    }
}

fn ending() -> Refusal {
    Refusal::new(ErrorCode::ShuttingDown, "the daemon is ending")
}
