//! The part of the tracker that orders effects and sets timers while one input
//! is processed. It has no access to the recorded state or to requests.

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::config::Config;
use crate::counts::Counts;
use crate::effect::Effect;
use crate::ledger::record::Fact;
use crate::timers::Timer;
use crate::tracker::Tracker;
use crate::tracker::passing::{Passing, Wait};

/// The tracker during one input.
pub(crate) struct Turn<'a> {
    pub tracker: &'a mut Tracker,
    pub config: &'a Config,
    pub now: Millis,
    pub out: &'a mut Vec<Effect>,
    pub timers: &'a mut BTreeSet<(Millis, Timer)>,
    pub counts: &'a mut Counts,
}

impl Turn<'_> {
    /// Watches a path from now on, at least until the request that needs it is
    /// answered.
    pub(crate) fn borrow(&mut self, path: &RelPath) {
        self.tracker.borrow(path);
        self.watch(path);
    }

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

    /// Returns the facts that have to be recorded before a fact that changes
    /// what sessions have seen of a renamed name. If the copy is not recorded
    /// yet, it has to be now, since it copies what they had seen before that
    /// fact. Recording every copy immediately would cost two facts for each
    /// save of an editor that renames the old file away and removes it.
    pub(crate) fn copied_before(&mut self, fact: &Fact) -> Vec<Fact> {
        if self.tracker.uncopied.is_empty() {
            return Vec::new();
        }
        let changed = match fact {
            Fact::Tracked { path, .. }
            | Fact::Read { path, .. }
            | Fact::Wrote { path, .. }
            | Fact::CopyDropped { path }
            | Fact::NamesParted { file: path, .. } => [Some(path), None],
            // A session's own write changes what the session has seen.
            Fact::Version(version) if version.author.session.is_some() => {
                [Some(&version.path), None]
            }
            Fact::NamesJoined { name, file } => [Some(name), Some(file)],
            _ => return Vec::new(),
        };
        let copies_of = |of| self.tracker.uncopied.get(of);
        let names = changed
            .into_iter()
            .flatten()
            .filter_map(copies_of)
            .flatten();
        let mut copies = Vec::new();
        for to in names.cloned().collect::<Vec<_>>() {
            let Passing::Copy { of, found, .. } = self.tracker.passing(&to) else {
                continue;
            };
            let (from, found) = (of.clone(), *found);
            copies.push(Fact::Copied {
                from: from.clone(),
                to: to.clone(),
            });
            let copied = Passing::Copy {
                of: from,
                copied: true,
                found: found.map(|(held, _)| (held, Wait::until(self.now))),
            };
            self.enter(&to, copied);
        }
        copies
    }
}
