//! Contents held back because a declared writer may still be writing (ATTR-5),
//! and the decision about them.

use crate::attribution::{Decision, Observation, decide, marked, passed};
use crate::disk::Content;
use crate::ledger::record::Held;
use crate::parts::Core;
use crate::requests::pending::Ask;
use crate::tracker::hints::WRITE_DELAY;
use crate::tracker::live::FirstLook;
use crate::tracker::passing::{HeldBack, Passing, Tentative};
use crate::tracker::reading::CUT_DELAY;
use touchmark_proto::{Evidence, Hash, RelPath};

impl Core {
    /// Returns whether a closed content that is not the declared one needs a
    /// second look. Only a second read after a fence shows that it is not the
    /// middle of the next write. A second look is made while the declared
    /// writer has not written yet, and for an empty file, since every save in
    /// place leaves the file empty for a moment. It is also made for what a
    /// command has marked: another author may have written between the last
    /// event and the read (ATTR-3).
    pub(super) fn must_confirm(
        &mut self,
        path: &RelPath,
        content: Content,
        evidence: Evidence,
    ) -> bool {
        let doubtful = content.size == 0
            || evidence == Evidence::Process
            || self
                .base
                .state
                .edits_on(path)
                .any(|(_, file)| file.expect.is_some() && file.matched.is_none());
        let live = self.base.tracker.live.entry(path.clone()).or_default();
        let looked_at = live.seen.first_look;
        let looked_at = looked_at.filter(|first| first.stamp == content.stamp);
        // A file that is being truncated is seen empty some time before the
        // system reports the write.
        let fences = &self.base.tracker.fences;
        let confirmed = looked_at.is_some_and(|first| {
            fences.is_done(first.fence)
                && (content.size > 0 || first.since + CUT_DELAY <= self.base.now)
        });
        if !doubtful {
            live.seen.first_look = None;
        }
        if !doubtful || confirmed {
            // A confirmed content stays confirmed. Until a writer closes the
            // file, it is read for each request, and need not be confirmed each
            // time.
            return false;
        }
        match looked_at {
            None => {
                let fence = self.ask_internally(Ask::Look(path.clone()));
                let live = self.base.tracker.live_mut(path);
                live.seen.first_look = Some(FirstLook {
                    stamp: content.stamp,
                    fence,
                    since: self.base.now,
                });
            }
            Some(_) => self.base.turn().read_in(path, CUT_DELAY),
        }
        self.base.tracker.reads.hint(path);
        true
    }

    /// Decides the contents held back once the writer is done or another writer
    /// has come. A content that was closed was a version, unless the current
    /// content begins with it, since it may then be the middle of the same
    /// write. A content that no writer closed was no version (ATTR-5).
    pub(super) fn release_held_back(
        &mut self,
        path: &RelPath,
        now: Hash,
        prefixes: &[(u64, Hash)],
    ) {
        for HeldBack { held, closed } in self.base.tracker.take_contents(path) {
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

    /// Records a closed content that another one has replaced.
    fn make_passed(&mut self, path: &RelPath, held: Held) {
        let window = self.base.config.editor_window;
        let decision = passed(
            &self.base.state,
            &self.base.witnesses,
            path,
            held.hash,
            self.base.now,
            window,
        );
        // The first closed change uses up a one-call mark (ATTR-8).
        let flag = self
            .base
            .view()
            .oldest_mark(path)
            .filter(|_| decision.is_unmarked());
        match flag.and_then(|flag| Some((flag, self.base.view().edit_session(flag)?))) {
            Some((flag, session)) => {
                let version = self
                    .base
                    .make_version(path, held, None, marked(session, flag));
                self.consume_mark(path, flag, Some(version));
            }
            None => {
                self.base.make_version(path, held, None, decision);
            }
        }
    }

    /// Decides about the content on disk after the edits that held contents
    /// back have ended.
    pub(crate) fn decide_held_back(&mut self, path: &RelPath) {
        self.decide_last_held_back(path, true);
    }

    /// Decides about the content on disk while the edit that is about to end is
    /// still open, whether the content is closed or not.
    pub(crate) fn take_held_back(&mut self, path: &RelPath) {
        self.decide_last_held_back(path, false);
    }

    /// Makes an unclosed content `Tentative` before an edit ends without a
    /// commit, so that the edit does not claim it: half of a write is not its
    /// result (ATTR-5).
    pub(crate) fn leave_unclosed(&mut self, path: &RelPath) {
        let last = self.base.tracker.passing(path).contents().last().copied();
        let live = self.base.tracker.live(path);
        let writing = live.is_some_and(|live| live.hints.is_writing());
        let Some(last) = last.filter(|last| writing && !last.closed && last.held.hash.is_some())
        else {
            return;
        };
        for HeldBack { held, closed } in self.base.tracker.take_contents(path) {
            if closed && held.hash != last.held.hash && held.size > 0 {
                self.make_passed(path, held);
            }
        }
        let half = Tentative {
            held: last.held,
            prefixes: Vec::new(),
            due: self.base.now + WRITE_DELAY,
            earlier: Vec::new(),
        };
        self.base
            .turn()
            .enter(path, Passing::Tentative(Box::new(half)));
    }

    fn decide_last_held_back(&mut self, path: &RelPath, hold: bool) {
        let Some(live) = self.base.tracker.live.get_mut(path) else {
            return;
        };
        let Some(held) = live.held_now() else {
            return;
        };
        live.seen.first_look = None;
        let writing = live.hints.is_writing();
        self.base.tracker.confirm(path);
        // A commit that claimed a write which was never read has recorded it
        // already.
        let recorded = self.base.state.paths.get(path).map(|state| state.held.hash);
        if recorded == Some(held.hash) {
            self.base.tracker.take_contents(path);
            return;
        }
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.base.now,
            writing,
            changes: 0,
            gap: false,
            editor_window: self.base.config.editor_window,
            hold,
            witnesses: &self.base.witnesses,
            open: true,
            stamp: None,
        };
        let decision = decide(&self.base.state, seen);
        if decision == Decision::Hold {
            return;
        }
        let earlier = self.base.tracker.take_contents(path);
        for HeldBack {
            held: earlier,
            closed,
        } in earlier
        {
            // A content that was closed before it was a separate version
            // (ATTR-4).
            if closed && earlier.hash != held.hash && earlier.size > 0 {
                self.make_passed(path, earlier);
            }
        }
        self.base.make_version(path, held, None, decision);
    }
}
