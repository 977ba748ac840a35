//! From the result of a read to versions. Versions are made only here.

mod flags;
mod held_back;
mod names;
mod settle;
mod versions;

use touchmark_proto::events::EditPhase;
use touchmark_proto::{Evidence, Hash, RelPath};

use crate::attribution::{Decision, Observation, decide};
use crate::disk::{Content, Found, ReadOutcome};
use crate::engine::Engine;
use crate::ledger::record::Held;
use crate::tracker::hints::Taken;
use crate::tracker::live::{Live, Obstacle};
use crate::tracker::passing::{HeldBack, Passing, Tentative, Wait};
use crate::tracker::reading::WRITE_DELAY;
use crate::tracker::reconcile::release;

impl Engine {
    /// Handles the result of a read: records what it shows, and passes it to
    /// the requests that wait for it.
    pub(crate) fn read_done(&mut self, path: &RelPath, ticket: u64, outcome: ReadOutcome) {
        let Some(next) = self.tracker.reads.done(path, ticket) else {
            return;
        };
        let mut file = self.found_by(path, ticket, &outcome);
        let there = matches!(outcome.found, Found::File(_));
        if there && file.is_some() {
            self.join_as_recorded(path);
            file = Some(self.view().file_of(path));
        }
        // While the daemon itself writes the path, only the read after the
        // write counts.
        let last = file
            .as_ref()
            .and_then(|file| self.tracker.writing.get(file).copied());
        let settled = match last {
            None => true,
            Some(last) => last.is_some_and(|last| last <= ticket),
        };
        if let Some(file) = file.as_ref().filter(|_| settled) {
            self.tracker.writing.remove(file);
            self.observe(file, ticket, &outcome);
            self.looked(file, ticket);
        }
        // A name without a file cannot be a name of another file.
        if there {
            let alone = self.view().file_of(path);
            self.join_alike(path);
            let file = self.view().file_of(path);
            let held = self.state.paths.get(&file).map(|state| state.held.hash);
            if file != alone && held.is_some_and(|held| held != outcome.hash()) {
                // The content found by this name is not on record for the file
                // yet, so the file's own name is read too.
                self.look_too(path, &file);
            }
        }
        let file = self.view().file_of(path);
        self.tracker
            .reconciliation
            .read_done(path, ticket, self.now);
        for pending in self.pending.values_mut() {
            let awaited = release(&mut pending.reads, path, ticket);
            if awaited {
                pending.since = self.now;
            }
            pending.take_found(path, &outcome, awaited);
            if file != *path {
                let awaited = awaited || pending.found.contains_key(path);
                pending.take_found(&file, &outcome, awaited);
            }
        }
        match next {
            Some(next) => self.turn().begin_read(path, next),
            None => self.turn().read_on(path, outcome.took),
        }
        self.forget_idle(path);
        self.forget_idle(&file);
    }

    /// Drops the live state of a path that is idle.
    pub(crate) fn forget_idle(&mut self, path: &RelPath) {
        // The live state has the stat of the last read, which is needed only
        // while a mark is open.
        if self.tracker.live(path).is_some_and(Live::is_idle)
            && self.state.edits_on(path).next().is_none()
        {
            self.tracker.forget_live(path);
        }
    }

    /// Notes the stat of a content that is recorded.
    pub(crate) fn note_stamp(&mut self, path: &RelPath, content: Content) {
        let held = self.state.paths.get(path).map(|state| state.held.hash);
        if held != Some(Some(content.hash)) {
            self.tracker.files.forget(path);
        } else if self.tracker.files.note(path, content) {
            self.tracker.stamps_noted += 1;
        }
    }

    /// Processes the result of a read of a watched path.
    pub(crate) fn observe(&mut self, path: &RelPath, ticket: u64, outcome: &ReadOutcome) {
        let is_copy = self.tracker.passing(path).copy_of().is_some();
        if is_copy || !self.state.paths.contains_key(path) {
            self.observe_copy(path, outcome);
            return;
        }
        // Something is there again, so an absence found before was the middle
        // of a save.
        let is_there = matches!(
            outcome.found,
            Found::Unstable { .. } | Found::Unreadable { .. }
        );
        if is_there && matches!(self.tracker.passing(path), Passing::Absent(_)) {
            self.tracker.settled(path);
        }
        if matches!(outcome.found, Found::Unstable { .. }) {
            self.tracker.live_mut(path).seen.obstacle = Some(Obstacle::Unstable);
            self.tracker.files.forget(path);
            self.turn().retry(path);
            return;
        }
        let seen = &mut self.tracker.live_mut(path).seen;
        seen.retries = 0;
        seen.obstacle = Obstacle::of(&outcome.found);
        let readable = !matches!(outcome.found, Found::Unreadable { .. });
        self.tracker.reads.readable(path, readable);
        match &outcome.found {
            Found::File(content) => {
                let hints = self.take_hints(path, ticket);
                self.tracker.live_mut(path).hints.looked_at(ticket);
                self.observe_file(path, *content, &outcome.prefixes, hints);
                return self.note_stamp(path, *content);
            }
            // A directory replaced the file, so the file is gone.
            Found::Absent | Found::NotAFile { .. } => {
                let hints = self.take_hints(path, ticket);
                self.observe_absence(path, hints);
                let state = self.state.paths.get(path);
                if state.is_some_and(|state| state.held.hash.is_none()) {
                    self.tracker.live_mut(path).hints.looked_at(ticket);
                }
            }
            // A file that cannot be read is neither a version nor an absence.
            // The next read that succeeds shows the change.
            Found::Unreadable { .. } | Found::Outside | Found::Unstable { .. } => {}
        }
        self.tracker.files.forget(path);
    }

    fn take_hints(&mut self, path: &RelPath, ticket: u64) -> Taken {
        let awaited = self.tracker.reconciliation.awaits(path);
        self.tracker.live_mut(path).hints.take(ticket, awaited)
    }

    fn observe_file(
        &mut self,
        path: &RelPath,
        content: Content,
        prefixes: &[(u64, Hash)],
        hints: Taken,
    ) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let recorded = state.held;
        self.tracker.found(path);
        let live = self.tracker.live_mut(path);
        let before = live.seen.stamp.replace(content.stamp);
        let untouched = before == Some(content.stamp);
        let moved_in = before.is_some_and(|stamp| stamp.inode != content.stamp.inode);
        let rewritten =
            moved_in || before.is_some_and(|stamp| stamp.modified != content.stamp.modified);

        if recorded.hash == Some(content.hash) {
            let moved = content.mtime_ms != recorded.mtime_ms;
            live.seen.mode = recorded
                .mode
                .and(content.mode)
                .filter(|mode| recorded.mode != Some(*mode));
            live.seen.mtime_ms = moved.then_some(content.mtime_ms);
            if rewritten {
                // The same bytes were written again, for example by an editor
                // that loaded and saved them. The next close belongs to this
                // write, and does not show who wrote the bytes (ATTR-8).
                live.save.consumed = None;
            }
            self.tracker.settled(path);
            let changed = hints.written_closes > 0 || (hints.closes > 0 && moved_in);
            if changed {
                self.close_without_change(path, untouched, hints.written_closes);
            }
            return;
        }

        live.seen.mtime_ms = None;
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
        let closed = hints.closes > 0;
        // If another writer has begun to write since the close, the content is
        // not what the close left.
        let found = HeldBack {
            held,
            closed: closed && !hints.writing,
        };
        let Decision::By { evidence, edit, .. } = &decision else {
            self.tracker.hold_back(path, found, false);
            return;
        };
        let (evidence, edit) = (*evidence, *edit);
        if evidence != Evidence::Declared && !hints.gap && self.must_confirm(path, content) {
            self.tracker.hold_back(path, found, true);
            // Once the content is confirmed, the close still ends a one-call
            // mark.
            self.tracker.live_mut(path).hints.give_back(hints);
            return;
        }
        if evidence != Evidence::Declared && !hints.gap && !closed {
            let content = Tentative {
                held,
                prefixes: prefixes.to_vec(),
                due: self.now + WRITE_DELAY,
                earlier: self.tracker.take_contents(path),
            };
            self.turn()
                .enter(path, Passing::Tentative(Box::new(content)));
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

    fn observe_absence(&mut self, path: &RelPath, hints: Taken) {
        let Some(state) = self.state.paths.get(path) else {
            return;
        };
        let recorded = state.held.hash.is_none();
        self.tracker.live_mut(path).seen.mtime_ms = None;
        if recorded {
            self.tracker.settled(path);
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
        let wait = Wait::until(self.now + self.config.settle);
        match decide(&self.state, seen) {
            Decision::Hold => {
                // A session with a mark on the path may create the file again.
                // If it is not back in time, it was removed (ATTR-5).
                if !matches!(self.tracker.passing(path), Passing::AwaitsReturn(..)) {
                    let mut contents = self.tracker.take_contents(path);
                    contents.push(HeldBack {
                        held: Held::ABSENT,
                        closed: false,
                    });
                    self.turn()
                        .enter(path, Passing::AwaitsReturn(contents, wait));
                }
            }
            decision @ Decision::By {
                evidence: Evidence::Declared | Evidence::Gap,
                ..
            } => {
                self.tracker.settled(path);
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
                // Most absences are the middle of a save (ATTR-12). Contents
                // held back before it no longer exist.
                if !matches!(self.tracker.passing(path), Passing::Absent(_)) {
                    self.turn().enter(path, Passing::Absent(wait));
                }
            }
        }
    }
}
