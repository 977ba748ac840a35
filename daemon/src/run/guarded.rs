//! Guarded writes and recovery: requests from the loop to the guard, and its
//! reports.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use touchmark_engine::requests::paths;
use touchmark_engine::{Hint, Input, Notice, WriteOrder, WriteOutcome};
use touchmark_proto::events::Happening;
use touchmark_proto::{Error, Hash, RelPath, Reply, Request, RequestId};

use super::Daemon;
use super::say::{Say, storage};
use crate::event::Event;
use crate::guard::{Guard, Replacer, Umask, is_temporary};
use crate::system::proc;

/// The most versions of a name that are searched for the last file there.
const RECENT: usize = 16;

/// Returns the user to whom the last file with a name belonged, as the log has
/// it; `None` for the daemon's user, and if it is not known.
pub(super) fn owner_in(
    log: &Arc<Mutex<crate::store::Reader>>,
) -> impl Fn(&RelPath) -> Option<u32> + Send + Sync + use<> {
    let log = Arc::clone(log);
    move |path| {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = log.history(path, None, RECENT).ok()?;
        let mut held = versions.iter().filter_map(|record| record.fact.held());
        held.find(|held| held.hash.is_some())?.owner
    }
}

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

    /// Returns the mask for new files of a request: that of the client's
    /// process, since the daemon's own was not chosen by its user. Where the
    /// system does not report it: that of the process which started the daemon.
    pub(super) fn umask_of(&self, request: RequestId) -> Umask {
        let asked = self.asked.get(&request);
        asked
            .and_then(|asked| self.peers.get(&asked.connection)?.process())
            .and_then(proc::umask)
            .unwrap_or(self.options.umask)
    }

    /// Returns the writer of earlier contents for a request.
    pub(super) fn replacer(
        &self,
        request: RequestId,
        log: &Arc<Mutex<crate::store::Reader>>,
    ) -> Replacer {
        let owner = owner_in(log);
        let log = Arc::clone(log);
        let is_secret = move |hash: &Hash| {
            let log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.is_secret(hash)
        };
        Replacer::new(
            Arc::clone(&self.guard),
            self.umask_of(request),
            is_secret,
            owner,
        )
    }

    /// Answers `recovery/*` on another thread.
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

    /// Looks again at files that lost their name to a guarded write, if a
    /// request names their path (GUARD-1).
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

    /// Looks on another thread at all files that lost their name, if the time
    /// for it has come.
    pub(super) fn look_at_all_moved(&self, now: Instant) {
        if self.guard.look_is_due(now) {
            let (guard, events) = (Arc::clone(&self.guard), self.events.clone());
            tokio::task::spawn_blocking(move || {
                guard.look_at_all_moved();
                let _loop_has_ended = events.send(Event::Kept);
            });
        }
    }

    /// Publishes to subscribers which bytes a second look has stored.
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
