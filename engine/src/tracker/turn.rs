//! What the tracker can do while one input is taken in: order effects and set
//! timers. It does not reach the recorded state, nor requests.

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::config::Config;
use crate::effect::Effect;
use crate::engine::{Counts, Engine, Timer};
use crate::tracker::Tracker;
use crate::tracker::passing::Passing;

/// The tracker in one turn.
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
    /// Has a path watched from now on.
    pub(crate) fn watch(&mut self, path: &RelPath) {
        if self.tracker.watch(path, self.config) {
            self.out.push(Effect::Track(path.clone()));
        }
    }

    /// Has a path that is not recorded watched no longer, if no request and no
    /// copy needs it.
    pub(crate) fn unwatch(&mut self, path: &RelPath) {
        if self.tracker.unwatch(path, self.config) {
            self.out.push(Effect::Untrack(path.clone()));
        }
    }

    /// A new fence for a query that arrives now: one that begins after it
    /// (SYNC-1), shared with every other query that arrives until then.
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

    /// Puts a path in a passing state, which ends by itself if it has a time.
    pub(crate) fn enter(&mut self, path: &RelPath, next: Passing) {
        if let Some(due) = next.due() {
            self.timers.insert((due, Timer::Settle(path.clone())));
        }
        self.tracker.enter(path, next);
    }
}
