//! From what a read found to versions: the one place where they are made.

mod flags;
mod held_back;
mod names;
mod settle;
mod versions;

use touchmark_proto::events::EditPhase;
use touchmark_proto::{Evidence, Hash, RelPath};

use crate::attribution::{Decision, Observation, decide};
use crate::engine::Engine;
use crate::input::{Content, Found, ReadOutcome};
use crate::ledger::record::Held;
use crate::tracker::live::{HeldBack, Live, Obstacle};
use crate::tracker::reading::WRITE_DELAY;

impl From<Content> for Held {
    fn from(content: Content) -> Self {
        Self {
            hash: Some(content.hash),
            size: content.size,
            lines: content.lines,
            mtime_ms: content.mtime_ms,
        }
    }
}

/// Keeps what a writer may be in the middle of (ATTR-5). A touch of it is no
/// new content.
fn hold_back(live: &mut Live, held: Held, closed: bool) {
    match live.held_back.last_mut() {
        Some(last) if last.held.hash == held.hash => {
            last.held = held;
            last.closed |= closed;
        }
        _ => live.held_back.push(HeldBack { held, closed }),
    }
}

/// What was hinted at since the last read.
#[derive(Clone, Copy)]
struct Hints {
    closes: u32,
    written_closes: u32,
    writing: bool,
    gap: bool,
}

impl Engine {
    /// Takes in what a read of a watched path found.
    pub(crate) fn observe(&mut self, path: &RelPath, ticket: u64, outcome: &ReadOutcome) {
        if !self.state.paths.contains_key(path) {
            self.observe_copy(path, outcome);
            return;
        }
        if matches!(outcome.found, Found::Unstable { .. }) {
            self.tracker.live_mut(path).obstacle = Some(Obstacle::Unstable);
            self.tracker.stamps.forget(path);
            self.retry(path);
            return;
        }
        let live = self.tracker.live_mut(path);
        live.retries = 0;
        live.obstacle = Obstacle::of(&outcome.found);
        match &outcome.found {
            Found::Unreadable { .. } => self.tracker.unreadable.insert(path.clone()),
            _ => self.tracker.unreadable.remove(path),
        };
        match &outcome.found {
            Found::File(content) => {
                let hints = self.take_hints(path, ticket);
                self.observe_file(path, *content, &outcome.prefixes, hints);
                return self.note_stamp(path, *content);
            }
            // A directory in its place: the file is gone.
            Found::Absent | Found::NotAFile { .. } => {
                let hints = self.take_hints(path, ticket);
                self.observe_absence(path, hints);
            }
            // What cannot be read is neither a version nor an absence; the
            // next read that succeeds tells what became of it.
            Found::Unreadable { .. } | Found::Outside | Found::Unstable { .. } => {}
        }
        self.tracker.stamps.forget(path);
    }

    fn take_hints(&mut self, path: &RelPath, ticket: u64) -> Hints {
        let awaited = self.tracker.reconciliation.awaits(path);
        let live = self.tracker.live_mut(path);
        let gap = std::mem::take(&mut live.gap) || awaited;
        // What was read may be the middle of a write that has been closed
        // since: the close is the next read's, which that close has ordered.
        let ahead = live.closes > 0 && ticket < live.closed_from;
        if ahead && !gap {
            return Hints {
                closes: 0,
                written_closes: 0,
                writing: true,
                gap,
            };
        }
        Hints {
            closes: std::mem::take(&mut live.closes),
            written_closes: std::mem::take(&mut live.written_closes),
            writing: live.writing,
            gap,
        }
    }

    fn observe_file(
        &mut self,
        path: &RelPath,
        content: Content,
        prefixes: &[(u64, Hash)],
        hints: Hints,
    ) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let recorded = state.held;
        self.tracker.unconfirmed.remove(path);
        let live = self.tracker.live_mut(path);
        live.absent = false;
        live.tentative = None;
        let moved_in = live
            .stamp
            .is_some_and(|stamp| stamp.inode != content.stamp.inode);
        let untouched = live.stamp == Some(content.stamp);
        let rewritten = moved_in
            || live
                .stamp
                .is_some_and(|stamp| stamp.modified != content.stamp.modified);
        live.stamp = Some(content.stamp);
        live.mtime_ms = (content.mtime_ms != recorded.mtime_ms).then_some(content.mtime_ms);
        self.tracker.unsettled.remove(path);

        if recorded.hash == Some(content.hash) {
            let live = self.tracker.live_mut(path);
            live.held_back.clear();
            if rewritten {
                // The same bytes once more, as of an editor that loaded and
                // saved them: the close to come is this write's, and says
                // nothing of whose they were (ATTR-8).
                live.consumed = None;
            }
            let changed = hints.written_closes > 0 || (hints.closes > 0 && moved_in);
            if changed {
                self.close_without_change(path, untouched, hints.written_closes);
            }
            return;
        }

        let live = self.tracker.live_mut(path);
        live.mtime_ms = None;
        let seen = Observation {
            path,
            hash: Some(content.hash),
            now: self.now,
            writing: hints.writing,
            changes: hints.closes + u32::from(hints.writing && hints.closes > 0),
            gap: hints.gap,
            editor_window: self.config.editor_window,
            hold: true,
        };
        let decision = decide(&self.state, seen);
        let held = Held::from(content);
        let Decision::By { evidence, edit, .. } = &decision else {
            let live = self.tracker.live_mut(path);
            hold_back(live, held, hints.closes > 0);
            return;
        };
        let (evidence, edit) = (*evidence, *edit);
        if evidence != Evidence::Declared && !hints.gap && self.must_confirm(path, content) {
            let live = self.tracker.live_mut(path);
            hold_back(live, held, hints.closes > 0);
            // The close still ends a one-call mark, once it is believed.
            live.closes += hints.closes;
            live.written_closes += hints.written_closes;
            return;
        }
        if evidence != Evidence::Declared && !hints.gap && hints.closes == 0 {
            let live = self.tracker.live_mut(path);
            live.tentative = Some((held, prefixes.to_vec()));
            self.unsettle(path, WRITE_DELAY);
            return;
        }
        self.release_held_back(path, content.hash, prefixes);
        if self.state.paths.get(path).map(|state| state.held.hash) == Some(Some(content.hash)) {
            return;
        }
        let version = self.make_version(path, held, None, decision);
        self.consume_marks(path, hints.closes, version);
        if evidence == Evidence::Declared
            && let Some(edit) = edit
            && self
                .state
                .edits
                .get(&edit)
                .is_some_and(|edit| edit.fact.one_shot)
        {
            self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
        }
    }

    fn observe_absence(&mut self, path: &RelPath, hints: Hints) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let live = self.tracker.live_mut(path);
        live.mtime_ms = None;
        live.tentative = None;
        if state.held.hash.is_none() {
            live.held_back.clear();
            live.absent = false;
            return;
        }
        let seen = Observation {
            path,
            hash: None,
            now: self.now,
            writing: false,
            changes: 0,
            gap: hints.gap,
            editor_window: self.config.editor_window,
            hold: true,
        };
        match decide(&self.state, seen) {
            Decision::Hold => {
                let live = self.tracker.live_mut(path);
                if !live.awaits_return() {
                    hold_back(live, Held::ABSENT, false);
                    // Whoever has it marked may be about to make it anew;
                    // what is not back by then was taken away (ATTR-5).
                    self.unsettle(path, self.config.settle);
                }
            }
            decision @ Decision::By {
                evidence: Evidence::Declared | Evidence::Gap,
                ..
            } => {
                let live = self.tracker.live_mut(path);
                live.absent = false;
                live.held_back.clear();
                let edit = match &decision {
                    Decision::By { edit, .. } => *edit,
                    Decision::Hold => None,
                };
                self.make_version(path, Held::ABSENT, None, decision);
                if let Some(edit) = edit
                    && self.state.edits.get(&edit).is_some_and(|e| e.fact.one_shot)
                {
                    self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
                }
            }
            Decision::By { .. } => {
                // Most absences are the middle of a save (ATTR-12).
                let live = self.tracker.live_mut(path);
                // What it held before that is no longer there.
                live.held_back.clear();
                if !live.absent {
                    live.absent = true;
                    self.unsettle(path, self.config.settle);
                }
            }
        }
    }
}
