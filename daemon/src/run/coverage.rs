//! Reduced coverage: it is detected, compensated at each query, repaired and
//! reported (LOSS-1, LOSS-2).

use std::time::{Duration, Instant};

use touchmark_engine::{Input, Notice};
use touchmark_proto::events::Happening;

use super::end::Ending;
use super::say::Say;
use super::{Daemon, GONE};

/// The interval at which degraded places are looked at (LOSS-2).
const MEND_PACE: Duration = Duration::from_secs(10);

impl Daemon {
    /// Makes a fence. Before it, changes without events are looked for, so that
    /// the answer after the fence is based on reads: other mounts, another
    /// directory under the workspace's name, places without events.
    pub(super) fn fence(&mut self, fence: u64) {
        if !self.look_around() {
            // The fence is never reached: requests that wait for it are
            // answered at the end of the daemon.
            return;
        }
        self.compare_blind_paths(false);
        if let Err(error) = self.disk.watcher.fence(fence) {
            tracing::debug!("{error}");
            self.decide(Input::FenceFailed { fence });
        }
    }

    /// Looks for changes that make no event. Returns whether the workspace
    /// still exists.
    pub(super) fn look_around(&mut self) -> bool {
        let mut inputs = Vec::new();
        self.disk.watcher.look_around(&mut inputs);
        for input in inputs {
            self.decide(input);
        }
        self.end_if_gone();
        self.ending.is_none()
    }

    /// Ends the daemon if the watcher has found that the workspace's directory
    /// is gone. Returns whether it is.
    pub(super) fn end_if_gone(&mut self) -> bool {
        let gone = self.disk.watcher.root_gone();
        if gone {
            self.ending = Some(Ending::Done(GONE));
        }
        gone
    }

    /// Orders a comparison of all blind paths. `at_once`: also if no query
    /// needs it.
    fn compare_blind_paths(&mut self, at_once: bool) {
        if self.disk.watcher.degraded().is_empty() {
            return;
        }
        let state = self.engine.state();
        let paths = state.paths.keys().chain(state.names.others());
        let paths: Vec<_> = paths
            .filter(|path| self.disk.watcher.blind(path))
            .cloned()
            .collect();
        if !paths.is_empty() {
            self.decide(Input::Unwatched { paths, at_once });
        }
    }

    /// Looks at degraded places from time to time, while there are any.
    pub(super) fn look_at_coverage(&mut self, now: Instant) {
        if self.disk.watcher.degraded().is_empty() {
            self.disk.next_mend = None;
        } else if *self.disk.next_mend.get_or_insert(now + MEND_PACE) <= now {
            self.disk.next_mend = Some(now + MEND_PACE);
            self.mend_coverage();
            self.fleet.looked(self.disk.watcher.lacks_backend());
            if !self.clients.subscriptions.is_empty() {
                self.compare_blind_paths(true);
                self.carry_out_all();
            }
            self.look_at_places();
        }
        self.tell_degraded();
    }

    /// Tries again to watch the places that could not be watched.
    pub(super) fn mend_coverage(&mut self) {
        let mut inputs = Vec::new();
        self.disk.watcher.mend(&mut inputs);
        self.feed_all(inputs);
        self.look_around();
        self.carry_out_all();
    }

    /// Publishes to subscribers what `status` newly lists as degraded since the
    /// last turn.
    fn tell_degraded(&mut self) {
        let degraded = self.degraded();
        if degraded == self.disk.told {
            return;
        }
        let state = self.engine.state();
        for part in degraded
            .iter()
            .filter(|part| !self.disk.told.contains(part))
        {
            tracing::warn!(
                path = part.path.as_ref().map(tracing::field::display),
                "degraded: {}{}",
                part.path
                    .as_ref()
                    .map(|path| format!("{path}: "))
                    .unwrap_or_default(),
                part.cause
            );
            self.outbox.push(Say::Notice(Box::new(Notice {
                clock: state.clock(state.n),
                happening: Happening::Degraded {
                    path: part.path.clone(),
                    cause: part.cause.clone(),
                },
                lines: None,
            })));
        }
        self.disk.told = degraded;
    }
}
