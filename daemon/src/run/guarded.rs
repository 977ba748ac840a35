//! Guarded writes and kept bytes: what the loop hands to the guard, and what
//! it tells of it.

use std::sync::Arc;
use std::time::Instant;

use touchmark_engine::requests::paths;
use touchmark_engine::{Hint, Input, Notice, WriteOrder, WriteOutcome};
use touchmark_proto::events::Happening;
use touchmark_proto::{Error, Reply, Request, RequestId};

use super::Daemon;
use super::say::{Say, storage};
use crate::event::Event;
use crate::guard::{Guard, Umask, is_temporary};
use crate::system::proc;

/// What the watcher saw, without the temporary files of guarded writes: nobody
/// tracks them, and what is renamed to one has not become it.
pub(super) fn without_temporary_names(input: Input) -> Option<Input> {
    match input {
        // The new name is hinted by itself.
        Input::Renamed { from, .. } if is_temporary(&from) => None,
        Input::Renamed { from, to } if is_temporary(&to) => Some(Input::Hint {
            path: from,
            hint: Hint::Removed,
        }),
        Input::Exchanged { from, to } if is_temporary(&from) || is_temporary(&to) => None,
        input => Some(input),
    }
}

impl Daemon {
    /// Writes aside; the edit that declares it is stored, or `failed`.
    pub(super) fn write(&mut self, request: RequestId, order: WriteOrder, failed: Option<&str>) {
        if let Some(cause) = failed {
            return self.feed(Input::Written {
                path: order.path,
                ticket: order.ticket,
                outcome: WriteOutcome::Failed(storage(cause)),
            });
        }
        let umask = self.umask_of(request);
        let (guard, events) = (Arc::clone(&self.guard), self.events.clone());
        tokio::task::spawn_blocking(move || {
            let outcome = guard.write(&order, umask);
            let WriteOrder { path, ticket, .. } = order;
            let _loop_has_ended = events.send(Event::Written {
                path,
                ticket,
                outcome,
            });
        });
    }

    /// What new files of a request are made with: the mask of the process that
    /// asks, since the daemon's own is nobody's choice; where the system does
    /// not tell, that of the daemon's starter.
    pub(super) fn umask_of(&self, request: RequestId) -> Umask {
        let asked = self.asked.get(&request);
        asked
            .and_then(|asked| self.peers.get(&asked.connection)?.process())
            .and_then(proc::umask)
            .unwrap_or(self.options.umask)
    }

    /// `recovery/*`, answered aside.
    pub(super) fn recover(
        &mut self,
        request: RequestId,
        answer: impl FnOnce(&Guard) -> Result<Reply, Error> + Send + 'static,
    ) {
        let (guard, events) = (Arc::clone(&self.guard), self.events.clone());
        tokio::task::spawn_blocking(move || {
            let outcome = answer(&guard);
            let _loop_has_ended = events.send(Event::Answered { request, outcome });
        });
    }

    /// A request names files: those that lost their name to a write there are
    /// looked at again (GUARD-1).
    pub(super) fn look_at_moved(&mut self, ask: &Request) {
        if self.guard.next_look().is_none() {
            return;
        }
        for path in paths(ask) {
            if let Ok(path) = path.normalise(&self.hub.root) {
                self.guard.look_at_moved(&path);
            }
        }
        self.tell_kept();
    }

    /// Looks aside at all that lost their name, if it is time to.
    pub(super) fn look_at_all_moved(&self, now: Instant) {
        if self.guard.look_is_due(now) {
            let (guard, events) = (Arc::clone(&self.guard), self.events.clone());
            tokio::task::spawn_blocking(move || {
                guard.look_at_all_moved();
                let _loop_has_ended = events.send(Event::Kept);
            });
        }
    }

    /// Tells subscribers of bytes that a second look has kept.
    pub(super) fn tell_kept(&mut self) {
        let state = self.engine.state();
        let clock = state.clock(state.n);
        for (path, kept) in self.guard.take_late() {
            self.outbox.push(Say::Notice(Box::new(Notice {
                clock,
                happening: Happening::Recovered { path, kept },
                lines: None,
            })));
        }
    }
}
