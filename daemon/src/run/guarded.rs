//! Guarded writes and recovery: requests from the loop to the guard, and its
//! reports.

use std::sync::Arc;
use std::time::Instant;

use touchmark_engine::requests::paths;
use touchmark_engine::{Hint, Input, Notice, WriteOrder, WriteOutcome};
use touchmark_proto::events::Happening;
use touchmark_proto::{Request, RequestId};

use super::Daemon;
use super::say::Say;
use crate::context::storage;
use crate::event::Event;
use crate::guard::is_temporary;

/// Returns an input of the watcher, without the temporary files of guarded
/// writes. No session tracks these, and a file that is renamed to such a name
/// was not moved there by a user.
pub(super) fn without_temporary_names(input: Input) -> Option<Input> {
    match input {
        // The new name is hinted separately.
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
    /// Starts a guarded write on another thread. The edit that declares it is
    /// stored; if storing failed, `failed` is the cause, and nothing is
    /// written.
    pub(super) fn write(&mut self, request: RequestId, order: WriteOrder, failed: Option<&str>) {
        if let Some(cause) = failed {
            return self.feed(Input::Written {
                path: order.path,
                ticket: order.ticket,
                outcome: WriteOutcome::Failed(storage(cause)),
            });
        }
        let umask = self.context(request).umask();
        let (guard, events) = (Arc::clone(&self.workspace.guard), self.events.clone());
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

    /// Looks again at files that lost their name to a guarded write, if a
    /// request names their path (GUARD-1).
    pub(super) fn look_at_moved(&mut self, ask: &Request) {
        if self.workspace.guard.next_look().is_none() {
            return;
        }
        for path in paths(ask) {
            if let Ok(path) = path.normalise(&self.clients.hub.root) {
                self.workspace.guard.look_at_moved(&path);
            }
        }
        self.tell_kept();
    }

    /// Looks on another thread at the files that lost their name, if the time
    /// for it has come.
    pub(super) fn look_at_due_moved(&self, now: Instant) {
        if self.workspace.guard.look_is_due(now) {
            let (guard, events) = (Arc::clone(&self.workspace.guard), self.events.clone());
            tokio::task::spawn_blocking(move || {
                guard.look_at_due_moved();
                let _loop_has_ended = events.send(Event::Kept);
            });
        }
    }

    /// Publishes to subscribers which bytes a second look has stored.
    pub(super) fn tell_kept(&mut self) {
        let state = self.engine.state();
        let clock = state.clock(state.n);
        for (path, kept) in self.workspace.guard.take_late() {
            self.outbox.push(Say::Notice(Box::new(Notice {
                clock,
                happening: Happening::Recovered { path, kept },
                lines: None,
            })));
        }
    }
}
