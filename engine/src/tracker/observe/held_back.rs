//! What a declared writer may be in the middle of (ATTR-5), and what it turns
//! out to have been.

use crate::attribution::{Decision, Observation, decide, marked, passed};
use crate::engine::{CUT_DELAY, Engine};
use crate::input::Content;
use crate::ledger::record::Held;
use crate::requests::pending::Ask;
use crate::tracker::live::FirstLook;
use crate::tracker::passing::{HeldBack, Passing, Tentative};
use crate::tracker::reading::WRITE_DELAY;
use touchmark_proto::{Hash, RelPath};

impl Engine {
    /// Whether a closed content that is not the declared one has to be looked
    /// at once more: only a second read behind a fence tells that it is not
    /// the middle of the next write. That is worth it while its declared
    /// writer is awaited, and for a file found empty, as every save in place
    /// leaves it for a moment.
    pub(super) fn must_confirm(&mut self, path: &RelPath, content: Content) -> bool {
        let doubtful = content.size == 0
            || self
                .state
                .edits_on(path)
                .any(|(_, file)| file.expect.is_some() && file.matched.is_none());
        let live = self.tracker.live.entry(path.clone()).or_default();
        let looked_at = live.seen.first_look;
        let looked_at = looked_at.filter(|first| first.stamp == content.stamp);
        // A file that is being cut to nothing is seen empty some time before
        // the system says that it was written.
        let fences = &self.tracker.fences;
        let confirmed = looked_at.is_some_and(|first| {
            fences.is_done(first.fence) && (content.size > 0 || first.since + CUT_DELAY <= self.now)
        });
        if !doubtful {
            live.seen.first_look = None;
        }
        if !doubtful || confirmed {
            // What is confirmed stays known: as long as nobody has closed it,
            // it is read for everybody who asks, and not doubted each time.
            return false;
        }
        match looked_at {
            None => {
                let fence = self.ask_internally(Ask::Look(path.clone()));
                let live = self.tracker.live_mut(path);
                live.seen.first_look = Some(FirstLook {
                    stamp: content.stamp,
                    fence,
                    since: self.now,
                });
            }
            Some(_) => self.turn().read_in(path, CUT_DELAY),
        }
        self.tracker.reads.hint(path);
        true
    }

    /// The writer is done, or another has come: what was closed meanwhile
    /// were versions, but for beginnings of what is there now, which may be
    /// the same writer's middle; what nobody closed was no version (ATTR-5).
    pub(super) fn release_held_back(
        &mut self,
        path: &RelPath,
        now: Hash,
        prefixes: &[(u64, Hash)],
    ) {
        for HeldBack { held, closed } in self.tracker.take_contents(path) {
            let partial = held.size == 0
                || prefixes
                    .iter()
                    .any(|(size, hash)| *size == held.size && Some(*hash) == held.hash);
            if !closed || partial || held.hash == Some(now) {
                continue;
            }
            self.make_passed(path, held);
        }
    }

    /// Records a closed content that another has taken the place of.
    fn make_passed(&mut self, path: &RelPath, held: Held) {
        let window = self.config.editor_window;
        let decision = passed(&self.state, path, held.hash, self.now, window);
        // The first closed change uses up a one-call mark (ATTR-8).
        let flag = self
            .view()
            .oldest_mark(path)
            .filter(|_| decision.is_unmarked());
        match flag.and_then(|flag| Some((flag, self.view().edit_session(flag)?))) {
            Some((flag, session)) => {
                let version = self.make_version(path, held, None, marked(session, flag));
                self.consume_mark(path, flag, Some(version));
            }
            None => {
                self.make_version(path, held, None, decision);
            }
        }
    }

    /// The edits that held contents back are gone: what is on disk is decided
    /// without them.
    pub(crate) fn decide_held_back(&mut self, path: &RelPath) {
        self.decide_last_held_back(path, true);
    }

    /// The same while the edit is still open that is about to end with what
    /// is there, closed or not.
    pub(crate) fn take_held_back(&mut self, path: &RelPath) {
        self.decide_last_held_back(path, false);
    }

    /// An edit is about to end although nobody has said that its writer is
    /// done: half of a write is none of what it left (ATTR-5).
    pub(crate) fn leave_unclosed(&mut self, path: &RelPath) {
        let last = self.tracker.passing(path).contents().last().copied();
        let live = self.tracker.live(path);
        let writing = live.is_some_and(|live| live.hints.is_writing());
        let Some(last) = last.filter(|last| writing && !last.closed && last.held.hash.is_some())
        else {
            return;
        };
        for HeldBack { held, closed } in self.tracker.take_contents(path) {
            if closed && held.hash != last.held.hash && held.size > 0 {
                self.make_passed(path, held);
            }
        }
        let half = Tentative {
            held: last.held,
            prefixes: Vec::new(),
            due: self.now + WRITE_DELAY,
            earlier: Vec::new(),
        };
        self.turn().enter(path, Passing::Tentative(Box::new(half)));
    }

    fn decide_last_held_back(&mut self, path: &RelPath, hold: bool) {
        let Some(live) = self.tracker.live.get_mut(path) else {
            return;
        };
        let Some(held) = live.held_now() else {
            return;
        };
        live.seen.first_look = None;
        let writing = live.hints.is_writing();
        self.tracker.confirm(path);
        // A commit that claimed a write nobody saw has recorded it already.
        let recorded = self.state.paths.get(path).map(|state| state.held.hash);
        if recorded == Some(held.hash) {
            self.tracker.take_contents(path);
            return;
        }
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.now,
            writing,
            changes: 0,
            gap: false,
            editor_window: self.config.editor_window,
            hold,
        };
        let decision = decide(&self.state, seen);
        if decision == Decision::Hold {
            return;
        }
        let earlier = self.tracker.take_contents(path);
        for HeldBack {
            held: earlier,
            closed,
        } in earlier
        {
            // What was closed before it was a version of its own (ATTR-4).
            if closed && earlier.hash != held.hash && earlier.size > 0 {
                self.make_passed(path, earlier);
            }
        }
        self.make_version(path, held, None, decision);
    }
}
