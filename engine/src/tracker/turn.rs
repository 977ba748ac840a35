//! The part of the tracker that orders effects and sets timers while one input
//! is processed. It has no access to the recorded state or to requests.

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::config::Config;
use crate::counts::Counts;
use crate::effect::Effect;
use crate::engine::Engine;
use crate::timers::Timer;
use crate::tracker::Tracker;
use crate::tracker::passing::Passing;

/// The tracker during one input.
pub(crate) struct Turn<'a> {
    pub(super) tracker: &'a mut Tracker,
    pub(super) config: &'a Config,
    pub(super) now: Millis,
    pub(super) out: &'a mut Vec<Effect>,
    pub(super) timers: &'a mut BTreeSet<(Millis, Timer)>,
    pub(super) counts: &'a mut Counts,
}

impl Engine {
    pub(crate) fn turn(&mut self) -> Turn<'_> {
        Turn {
            tracker: &mut self.tracker,
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            timers: &mut self.timers,
            counts: &mut self.counts,
        }
    }
}

impl Turn<'_> {
    /// Watches a path from now on.
    pub(crate) fn watch(&mut self, path: &RelPath) {
        if self.tracker.watch(path, self.config) {
            self.out.push(Effect::Track(path.clone()));
        }
    }

    /// Stops watching a path that is not recorded, if no request and no copy
    /// needs it.
    pub(crate) fn unwatch(&mut self, path: &RelPath) {
        if self.tracker.unwatch(path, self.config) {
            self.out.push(Effect::Untrack(path.clone()));
        }
    }

    /// Returns the number of the fence for a query that arrives now: one that
    /// begins after it (SYNC-1). All queries that arrive before it begins share
    /// it.
    pub(crate) fn want_fence(&mut self) -> u64 {
        let (fence, at_once) = self.tracker.fences.want();
        if at_once {
            self.start_fence(fence);
        }
        fence
    }

    /// Orders the next fence, if one is wanted.
    pub(crate) fn next_fence(&mut self) {
        if let Some(next) = self.tracker.fences.next() {
            self.start_fence(next);
        }
    }

    fn start_fence(&mut self, fence: u64) {
        self.counts.fences += 1;
        self.out.push(Effect::Fence(fence));
    }

    /// Sets a path's passing state, and a timer if the state has a deadline.
    pub(crate) fn enter(&mut self, path: &RelPath, next: Passing) {
        if let Some(due) = next.due() {
            self.timers.insert((due, Timer::Settle(path.clone())));
        }
        self.tracker.enter(path, next);
    }
}
