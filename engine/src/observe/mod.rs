//! From the result of a read to versions. Versions are made only here.

mod flags;
mod held_back;
mod late_windows;
mod marked;
mod names;
mod same_file;
mod settle;
mod swept;
mod versions;

pub(crate) use late_windows::{LateWindow, LateWindows};

use touchmark_proto::events::EditPhase;
use touchmark_proto::{Evidence, Hash, RelPath};

use crate::attribution::{Decision, Observation, decide};
use crate::base::Base;
use crate::disk::{Content, Found, ReadOutcome};
use crate::ledger::record::Held;
use crate::parts::Core;
use crate::tracker::hints::Taken;
use crate::tracker::hints::WRITE_DELAY;
use crate::tracker::live::{Live, Obstacle};
use crate::tracker::passing::{HeldBack, Passing, Tentative, Wait};

impl Core {
    /// Handles the result of a read: records what it shows, and passes it to
    /// the requests that wait for it.
    pub(crate) fn read_done(&mut self, path: &RelPath, ticket: u64, outcome: ReadOutcome) {
        let Some(next) = self.base.tracker.reads.done(path, ticket) else {
            return;
        };
        let link = self.base.tracker.link_at(path);
        let mut file = self.found_by(path, ticket, &outcome);
        if let Some(file) = &file {
            self.base.tracker.note_link(file, link, &outcome);
        }
        let there = matches!(outcome.found, Found::File(_));
        if there && file.is_some() {
            self.join_as_recorded(path);
            file = Some(self.base.view().file_of(path));
        }
        // While the daemon itself writes the path, only the read after the
        // write counts.
        let last = file
            .as_ref()
            .and_then(|file| self.base.tracker.writing.get(file).copied());
        let settled = match last {
            None => true,
            Some(last) => last.is_some_and(|last| last <= ticket),
        };
        if let Some(file) = file.as_ref().filter(|_| settled) {
            self.base.tracker.writing.remove(file);
            self.observe(file, ticket, &outcome);
            self.looked(file, ticket);
        }
        // A name without a file cannot be a name of another file.
        if there {
            let alone = self.base.view().file_of(path);
            self.join_alike(path);
            let file = self.base.view().file_of(path);
            let held = self
                .base
                .state
                .paths
                .get(&file)
                .map(|state| state.held.hash);
            if file != alone && held.is_some_and(|held| held != outcome.hash()) {
                // The content found by this name is not on record for the file
                // yet, so the file's own name is read too.
                self.look_too(path, &file);
            }
        }
        let file = self.base.view().file_of(path);
        self.base
            .tracker
            .reconciliation
            .read_done(path, ticket, self.base.now);
        let now = self.base.now;
        self.requests.read_done(path, &file, ticket, &outcome, now);
        match next {
            Some(next) => self.base.turn().begin_read(path, next),
            None => self.base.turn().read_on(path, outcome.took),
        }
        self.base.forget_idle(path);
        self.base.forget_idle(&file);
    }

    /// Processes the result of a read of a watched path.
    pub(crate) fn observe(&mut self, path: &RelPath, ticket: u64, outcome: &ReadOutcome) {
        self.base
            .tracker
            .reads
            .open_for_writing(path, outcome.open_for_writing);
        self.base.witnesses.read(path, ticket);
        let is_copy = self.base.tracker.passing(path).copy_of().is_some();
        if is_copy || !self.base.state.paths.contains_key(path) {
            self.observe_copy(path, outcome);
            return;
        }
        // Something is there again, so an absence found before was the middle
        // of a save.
        let is_there = matches!(
            outcome.found,
            Found::Unstable { .. } | Found::Unreadable { .. }
        );
        if is_there && matches!(self.base.tracker.passing(path), Passing::Absent(_)) {
            self.base.tracker.settled(path);
        }
        if matches!(outcome.found, Found::Unstable { .. }) {
            self.base.tracker.live_mut(path).seen.obstacle = Some(Obstacle::Unstable);
            self.base.tracker.files.forget(path);
            self.base.turn().retry(path);
            return;
        }
        let seen = &mut self.base.tracker.live_mut(path).seen;
        seen.retries = 0;
        seen.obstacle = Obstacle::of(&outcome.found);
        let readable = !matches!(outcome.found, Found::Unreadable { .. });
        self.base.tracker.reads.readable(path, readable);
        match &outcome.found {
            Found::File(content) => {
                let hints = self.base.take_hints(path, ticket);
                self.base.tracker.live_mut(path).hints.looked_at(ticket);
                self.observe_file(path, *content, &outcome.prefixes, hints);
                if !outcome.open_for_writing {
                    self.base.witnesses.looked(path, ticket);
                }
                return self.base.note_stamp(path, *content);
            }
            // A directory replaced the file, so the file is gone.
            Found::Absent | Found::NotAFile { .. } => {
                let hints = self.base.take_hints(path, ticket);
                self.observe_absence(path, hints);
                self.base.witnesses.looked(path, ticket);
                let state = self.base.state.paths.get(path);
                if state.is_some_and(|state| state.held.hash.is_none()) {
                    self.base.tracker.live_mut(path).hints.looked_at(ticket);
                }
            }
            // A file that cannot be read is neither a version nor an absence.
            // The next read that succeeds shows the change.
            Found::Unreadable { .. } | Found::Outside | Found::Unstable { .. } => {}
        }
        self.base.tracker.files.forget(path);
    }

    fn observe_file(
        &mut self,
        path: &RelPath,
        content: Content,
        prefixes: &[(u64, Hash)],
        hints: Taken,
    ) {
        let Some(state) = self.base.state.paths.get(path) else {
            return;
        };
        let recorded = state.held;
        self.base.tracker.found(path);
        let open = self.base.tracker.reads.is_open_for_writing(path);
        let live = self.base.tracker.live_mut(path);
        let before = live.seen.stamp.replace(content.stamp);
        let untouched = before == Some(content.stamp);
        let moved_in = before.is_some_and(|stamp| stamp.inode != content.stamp.inode);
        let rewritten =
            moved_in || before.is_some_and(|stamp| stamp.modified != content.stamp.modified);

        if recorded.hash == Some(content.hash) {
            self.base.witnesses.unchanged(path);
            let moved = content.mtime_ms != recorded.mtime_ms;
            live.seen.mode = recorded
                .mode
                .and(content.mode)
                .filter(|mode| recorded.mode != Some(*mode));
            live.seen.mtime_ms = moved.then_some(content.mtime_ms);
            // No version says that the symlink is gone, so a later one, which
            // may be another author's, must not say so.
            live.seen.link = None;
            if rewritten {
                // The same bytes were written again, for example by an editor
                // that loaded and saved them. The next close belongs to this
                // write, and does not show who wrote the bytes (ATTR-8).
                live.save.consumed = None;
            }
            self.base.tracker.settled(path);
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
            now: self.base.now,
            writing: hints.writing,
            changes: hints.closes + u32::from(hints.writing && hints.closes > 0),
            gap: hints.gap,
            editor_window: self.base.config.editor_window,
            hold: true,
            witnesses: &self.base.witnesses,
            open,
            stamp: Some(content.stamp),
        };
        let decision = decide(&self.base.state, seen);
        let held = Held::from(content);
        let closed = hints.closes > 0;
        // If another writer has begun to write since the close, the content is
        // not what the close left.
        let found = HeldBack {
            held,
            closed: closed && !hints.writing,
        };
        let Decision::By { evidence, edit, .. } = &decision else {
            self.base.tracker.hold_back(path, found, false);
            return;
        };
        let (evidence, edit) = (*evidence, *edit);
        if evidence != Evidence::Declared
            && !hints.gap
            && self.must_confirm(path, content, evidence)
        {
            self.base.tracker.hold_back(path, found, true);
            // Once the content is confirmed, the close still ends a one-call
            // mark.
            self.base.tracker.live_mut(path).hints.give_back(hints);
            return;
        }
        if evidence != Evidence::Declared && !hints.gap && !closed {
            let content = Tentative {
                held,
                prefixes: prefixes.to_vec(),
                due: self.base.now + WRITE_DELAY,
                earlier: self.base.tracker.take_contents(path),
            };
            self.base
                .turn()
                .enter(path, Passing::Tentative(Box::new(content)));
            return;
        }
        self.release_held_back(path, content.hash, prefixes);
        if self.base.state.paths.get(path).map(|state| state.held.hash) == Some(Some(content.hash))
        {
            self.base.witnesses.unchanged(path);
            return;
        }
        let version = self.base.make_version(path, held, None, decision);
        self.consume_marks(path, hints.closes, version);
        if evidence == Evidence::Declared
            && let Some(edit) = edit
            && self
                .base
                .state
                .edits
                .get(&edit)
                .is_some_and(|edit| edit.fact.one_shot)
        {
            self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
        }
    }

    fn observe_absence(&mut self, path: &RelPath, hints: Taken) {
        let Some(state) = self.base.state.paths.get(path) else {
            return;
        };
        let recorded = state.held.hash.is_none();
        self.base.tracker.live_mut(path).seen.mtime_ms = None;
        if recorded {
            self.base.tracker.settled(path);
            return;
        }
        let seen = Observation {
            path,
            hash: None,
            now: self.base.now,
            writing: false,
            changes: 0,
            gap: hints.gap,
            editor_window: self.base.config.editor_window,
            hold: true,
            witnesses: &self.base.witnesses,
            open: false,
            stamp: None,
        };
        let wait = Wait::until(self.base.now + self.base.config.settle);
        match decide(&self.base.state, seen) {
            Decision::Hold => {
                // A session with a mark on the path may create the file again.
                // If it is not back in time, it was removed (ATTR-5).
                if !matches!(self.base.tracker.passing(path), Passing::AwaitsReturn(..)) {
                    let mut contents = self.base.tracker.take_contents(path);
                    contents.push(HeldBack {
                        held: Held::ABSENT,
                        closed: false,
                    });
                    self.base
                        .turn()
                        .enter(path, Passing::AwaitsReturn(contents, wait));
                }
            }
            decision @ Decision::By {
                evidence: Evidence::Declared | Evidence::Gap,
                ..
            } => {
                self.base.tracker.settled(path);
                let edit = match &decision {
                    Decision::By { edit, .. } => *edit,
                    Decision::Hold => None,
                };
                self.base.make_version(path, Held::ABSENT, None, decision);
                if let Some(edit) = edit
                    && self
                        .base
                        .state
                        .edits
                        .get(&edit)
                        .is_some_and(|e| e.fact.one_shot)
                {
                    self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
                }
            }
            Decision::By { .. } => {
                // Most absences are the middle of a save (ATTR-12). Contents
                // held back before it no longer exist.
                if !matches!(self.base.tracker.passing(path), Passing::Absent(_)) {
                    self.base.turn().enter(path, Passing::Absent(wait));
                }
            }
        }
    }
}

impl Base {
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

    fn take_hints(&mut self, path: &RelPath, ticket: u64) -> Taken {
        let awaited = self.tracker.reconciliation.awaits(path);
        let taken = self.tracker.live_mut(path).hints.take(ticket, awaited);
        Taken {
            gap: taken.gap || self.paused,
            ..taken
        }
    }
}
