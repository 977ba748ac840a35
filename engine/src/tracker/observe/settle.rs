//! Absences, copies and unclosed contents: what may still dissolve is waited
//! for a little, then recorded.

use crate::attribution::{Decision, Observation, decide, unclaimed};
use crate::by_path::sorted;
use crate::engine::{Engine, Timer};
use crate::ledger::record::{Fact, Held};
use crate::requests::scope::Scope;
use crate::tracker::live::HeldBack;
use touchmark_proto::{Hash, Millis, RelPath};

impl Engine {
    /// Waits a little for what may dissolve by itself.
    pub(super) fn unsettle(&mut self, path: &RelPath, delay: Millis) {
        let due = self.now + delay;
        self.tracker.live_mut(path).settle_at = due;
        self.tracker.unsettled.insert(path.clone());
        self.timers.insert((due, Timer::Settle(path.clone())));
    }

    /// Records the absences, copies and unclosed contents that somebody asks
    /// about as of now, though they may still dissolve; what nobody asks about
    /// has its time.
    pub(crate) fn settle_for(&mut self, scope: &Scope) {
        if self.tracker.unsettled.is_empty() {
            return;
        }
        let due = self
            .tracker
            .unsettled
            .iter()
            .filter(|path| !self.may_return(path));
        let due = due.filter(|path| self.speaks_of(scope, path));
        for path in sorted(due.cloned()) {
            self.settle(&path);
        }
    }

    /// An absence that whoever has the file marked may end in a moment: it is
    /// told, and recorded only when it has had its time (ATTR-5).
    fn may_return(&self, path: &RelPath) -> bool {
        self.tracker
            .live(path)
            .is_some_and(|live| live.awaits_return() && live.settle_at > self.now)
    }

    /// Something unsettled has had its time. What is known of an absence or a
    /// copy may be as old as that time, and where the machine is busy the
    /// hints that it has dissolved are on their way still: it is looked at
    /// once more.
    pub(crate) fn settle_in_time(&mut self, path: &RelPath) {
        let Some(live) = self.tracker.live(path) else {
            return;
        };
        if !self.tracker.unsettled.contains(path) || live.last_look.is_some() {
            return;
        }
        if !live.absent && live.copy_of.is_none() && !live.awaits_return() {
            self.settle(path);
            return;
        }
        let ticket = self.order_read(path, false);
        self.tracker.live_mut(path).last_look = Some(ticket);
    }

    /// A read is done: what it was the last look at, and is there still, is
    /// recorded.
    pub(crate) fn looked(&mut self, path: &RelPath, ticket: u64) {
        let Some(live) = self.tracker.live_if_any(path) else {
            return;
        };
        if live.last_look.is_some_and(|wanted| wanted <= ticket) {
            live.last_look = None;
            // Another absence may have begun meanwhile, with a time of its own.
            let due = live.settle_at <= self.now;
            if due && self.tracker.unsettled.contains(path) {
                self.settle(path);
            }
        }
    }

    /// Records that there is no file, as somebody has just found who is about
    /// to make one. Its owner has taken it away: nothing of theirs is lost to
    /// the new one, whoever else was waited for.
    pub(crate) fn settle_absence(&mut self, path: &RelPath) {
        self.settle_for(&Scope::Paths(vec![path.clone()]));
        let Some(live) = self.tracker.live_if_any(path) else {
            return;
        };
        if live.awaits_return() {
            live.held_back.clear();
            let decision = unclaimed(&self.state, path, None, self.now);
            self.make_version(path, Held::ABSENT, None, decision);
        }
    }

    /// Records an absence, a copy or an unclosed content that has not
    /// dissolved.
    pub(crate) fn settle(&mut self, path: &RelPath) {
        self.tracker.unsettled.remove(path);
        let Some(live) = self.tracker.live_if_any(path) else {
            return;
        };
        if let Some(from) = live.copy_of.clone() {
            if let Some(held) = live.copy.take() {
                live.copy_of = None;
                self.record_copy(&from, path, held);
            }
            return;
        }
        if let Some((held, prefixes)) = live.tentative.take() {
            // An editor's report may have decided it meanwhile.
            if self.state.paths.get(path).map(|state| state.held.hash) == Some(held.hash) {
                return;
            }
            self.settle_content(path, held, &prefixes);
            return;
        }
        if live.awaits_return() {
            self.take_held_back(path);
            return;
        }
        if !std::mem::take(&mut live.absent) {
            return;
        }
        if self.is_unnamed_copy(path) {
            // What came of it by a further rename is copied first.
            let onwards = self.tracker.unsettled.iter().filter(|copy| {
                let live = self.tracker.live(copy);
                live.is_some_and(|live| live.copy_of.as_ref() == Some(path))
            });
            for copy in sorted(onwards.cloned()) {
                self.settle(&copy);
            }
            self.record(Fact::CopyDropped { path: path.clone() });
            self.unwatch(path);
            return;
        }
        let seen = Observation {
            path,
            hash: None,
            now: self.now,
            writing: false,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold: false,
        };
        let decision = decide(&self.state, seen);
        self.make_version(path, Held::ABSENT, None, decision);
    }

    /// Whether a path is held only because a rename copied what was known of
    /// another, and nobody has named it since (ATTR-12).
    pub(super) fn is_unnamed_copy(&self, path: &RelPath) -> bool {
        let Some(state) = self.state.paths.get(path) else {
            return false;
        };
        !state.holders.is_empty()
            && state.holders.iter().all(|holder| {
                self.state
                    .knowledge(holder, path)
                    .is_some_and(|knowledge| knowledge.copied)
            })
    }

    pub(super) fn settle_content(&mut self, path: &RelPath, held: Held, prefixes: &[(u64, Hash)]) {
        let writing = self.tracker.live(path).is_some_and(|live| live.writing);
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.now,
            writing,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold: true,
        };
        let decision = decide(&self.state, seen);
        if decision == Decision::Hold {
            let live = self.tracker.live_mut(path);
            live.held_back.push(HeldBack {
                held,
                closed: false,
            });
            return;
        }
        if let Some(hash) = held.hash {
            self.release_held_back(path, hash, prefixes);
        }
        self.make_version(path, held, None, decision);
    }

    pub(super) fn record_copy(&mut self, from: &RelPath, to: &RelPath, held: Held) {
        if !self.state.paths.contains_key(from) {
            self.unwatch(to);
            return;
        }
        self.record(Fact::Copied {
            from: from.clone(),
            to: to.clone(),
        });
        let seen = Observation {
            path: to,
            hash: held.hash,
            now: self.now,
            writing: false,
            changes: 1,
            gap: false,
            editor_window: self.config.editor_window,
            hold: false,
        };
        let decision = decide(&self.state, seen);
        let version = self.make_version(to, held, Some(from), decision);
        let live = self.tracker.live_mut(to);
        live.closes = 0;
        live.gap = false;
        self.consume_marks(to, 1, version);
        self.join_as_found(to);
    }
}
