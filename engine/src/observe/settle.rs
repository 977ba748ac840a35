//! Settling: absences, copies and unclosed contents may still end without a
//! record, so they are recorded only after a delay or when an answer covers
//! them.

use crate::attribution::{Decision, Observation, decide, unclaimed};
use crate::by_path::sorted;
use crate::ledger::record::{Fact, Held};
use crate::parts::Core;
use crate::requests::scope::Scope;
use crate::tracker::passing::{HeldBack, Passing, Tentative};
use crate::view::View;
use touchmark_proto::{Evidence, RelPath};

impl Core {
    /// Records the absences, copies and unclosed contents that an answer with
    /// this scope covers, although they may still end. Those outside the scope
    /// keep their deadlines.
    pub(crate) fn settle_for(&mut self, scope: &Scope) {
        if self.base.tracker.unsettled.is_empty() {
            return;
        }
        let due = self
            .base
            .tracker
            .unsettled
            .iter()
            .filter(|path| !self.base.view().may_return(path));
        let due = due.filter(|path| self.base.view().covers(scope, path));
        for path in sorted(due.cloned()) {
            self.settle(&path);
        }
    }

    /// Handles the deadline of an unsettled state. An absence or a copy may
    /// have ended without a hint having arrived yet, since the machine may be
    /// busy. So the path is read once more.
    pub(crate) fn settle_in_time(&mut self, path: &RelPath) {
        match self.base.tracker.passing(path).wait() {
            None => self.settle(path),
            Some(wait) if wait.last_look.is_some() => {}
            Some(_) => {
                let ticket = self.base.turn().order_read(path, false);
                self.base.tracker.last_look(path, ticket);
            }
        }
    }

    /// Handles a completed read: if it was the check at a deadline, and the
    /// state has lasted, it is recorded.
    pub(crate) fn looked(&mut self, path: &RelPath, ticket: u64) {
        if self.base.tracker.looked_last(path, ticket, self.base.now) {
            self.settle(path);
        }
    }

    /// Records an absence because an edit that will create the file found it.
    /// The file's owner has removed it, so the new file destroys nothing of the
    /// owner's, even if the absence was waiting for another mark.
    pub(crate) fn settle_absence(&mut self, path: &RelPath) {
        self.settle_for(&Scope::Paths(vec![path.clone()]));
        if matches!(self.base.tracker.passing(path), Passing::AwaitsReturn(..)) {
            self.base.tracker.settled(path);
            let decision = unclaimed(
                &self.base.state,
                &self.base.witnesses,
                path,
                None,
                self.base.now,
            );
            self.base.make_version(path, Held::ABSENT, None, decision);
        }
    }

    /// Records an absence, a copy or an unclosed content that has lasted.
    pub(crate) fn settle(&mut self, path: &RelPath) {
        match self.base.tracker.passing(path) {
            Passing::AwaitsReturn(..) => self.take_held_back(path),
            Passing::Settled
            | Passing::HeldBack(_)
            | Passing::Unconfirmed(_)
            | Passing::Copy { found: None, .. } => {}
            Passing::Absent(_) | Passing::Tentative(_) | Passing::Copy { .. } => {
                match self.base.tracker.settled(path) {
                    Passing::Absent(_) => self.record_absence(path),
                    Passing::Tentative(content) => self.settle_content(path, *content),
                    Passing::Copy {
                        of,
                        copied,
                        found: Some((held, _)),
                    } => self.record_copy(&of, path, copied, held),
                    _ => {}
                }
            }
        }
    }

    fn record_absence(&mut self, path: &RelPath) {
        let is_unnamed = self.base.view().is_unnamed_copy(path);
        let live = self.base.tracker.live(path);
        // Each move of a file is part of its history (HIST-9). The look at the
        // end of a window records it as well.
        let has_moved = live.is_some_and(|live| live.hints.has_moved());
        let is_swept = || {
            self.base
                .state
                .windows_on(path)
                .any(|one| one.fact.workspace)
        };
        if !is_unnamed || has_moved && !is_swept() {
            let seen = Observation {
                path,
                hash: None,
                now: self.base.now,
                writing: false,
                changes: 0,
                gap: false,
                editor_window: self.base.config.editor_window,
                hold: false,
                witnesses: &self.base.witnesses,
                open: false,
                stamp: None,
            };
            let decision = decide(&self.base.state, seen);
            self.base.make_version(path, Held::ABSENT, None, decision);
        }
        if is_unnamed {
            self.base.record(Fact::CopyDropped { path: path.clone() });
            self.unwatch(path);
        }
    }

    fn settle_content(&mut self, path: &RelPath, content: Tentative) {
        let Tentative { held, prefixes, .. } = content;
        // An editor's report may have decided it meanwhile.
        if self.base.state.paths.get(path).map(|state| state.held.hash) == Some(held.hash) {
            return;
        }
        self.base
            .tracker
            .enter(path, Passing::held_back(content.earlier));
        let live = self.base.tracker.live(path);
        let writing = live.is_some_and(|live| live.hints.is_writing());
        let seen = Observation {
            path,
            hash: held.hash,
            now: self.base.now,
            writing,
            changes: 0,
            gap: false,
            editor_window: self.base.config.editor_window,
            hold: true,
            witnesses: &self.base.witnesses,
            open: true,
            stamp: None,
        };
        let decision = decide(&self.base.state, seen);
        if decision == Decision::Hold {
            let closed = false;
            self.base
                .tracker
                .hold_back(path, HeldBack { held, closed }, false);
            return;
        }
        if let Some(hash) = held.hash {
            self.release_held_back(path, hash, &prefixes);
        }
        self.base.make_version(path, held, None, decision);
    }

    fn record_copy(&mut self, from: &RelPath, to: &RelPath, copied: bool, held: Held) {
        if !copied {
            if !self.base.state.paths.contains_key(from) {
                self.unwatch(to);
                return;
            }
            self.base.record(Fact::Copied {
                from: from.clone(),
                to: to.clone(),
            });
        }
        let seen = Observation {
            path: to,
            hash: held.hash,
            now: self.base.now,
            writing: false,
            changes: 1,
            gap: false,
            editor_window: self.base.config.editor_window,
            hold: false,
            witnesses: &self.base.witnesses,
            open: true,
            stamp: None,
        };
        let decision = decide(&self.base.state, seen);
        let version = self.base.make_version(to, held, Some(from), decision);
        self.base.tracker.live_mut(to).hints.recorded();
        self.consume_marks(to, 1, version);
        self.join_as_found(to);
    }
}

impl View<'_> {
    /// Returns whether an absence may still be ended by the session that has
    /// the file marked. Answers contain it, but it is recorded only at its
    /// deadline (ATTR-5).
    fn may_return(&self, path: &RelPath) -> bool {
        matches!(self.tracker.passing(path), Passing::AwaitsReturn(_, wait) if wait.due > self.now)
    }

    /// Returns whether a fact is a version that is recorded when the name is
    /// read, since a session uses it, or that was read already.
    pub(crate) fn is_read(&self, fact: &Fact) -> bool {
        let Fact::Version(version) = fact else {
            return false;
        };
        let is_known =
            |held: Held| held.hash == version.held.hash || !self.is_unnamed_copy(&version.path);
        let state = self.state.paths.get(&version.path);
        version.evidence != Evidence::Claimed && state.is_some_and(|state| is_known(state.held))
    }

    /// Returns whether a path is tracked only because a rename copied what
    /// sessions had seen of another, and no session has used the name since
    /// (ATTR-12).
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
}
