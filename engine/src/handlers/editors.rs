//! `editor/*`: reports of editors about opened, changed and saved files.

use touchmark_proto::daemon::Done;
use touchmark_proto::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use touchmark_proto::{AuthorKind, Evidence, Reply};

use crate::attribution::by_editor;
use crate::base::Base;
use crate::ledger::record::Fact;
use crate::parts::Core;
use crate::requests::limits::too_many;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::tracker::live::Live;
use crate::view::View;

impl Core {
    /// Records an editor's report of a save (ATTR-2). The report explains the
    /// version with its content, whether that is recorded already (as a
    /// correction) or later.
    pub(crate) fn editor_did_save(&mut self, pending: &Pending, ask: &EditorDidSave) -> Answered {
        let path = self.base.view().resolve(&ask.path)?;
        self.base.unsaved.remove(pending.connection(), &path);
        let time = ask.time.unwrap_or(self.base.now).min(self.base.now);
        let Some(state) = self.base.state.paths.get(&path) else {
            self.saved_untracked(path, ask.hash);
            return done(Reply::EditorDidSave(Done {}));
        };
        let window = self.base.config.editor_window;
        let recorded = state
            .versions
            .iter()
            .rev()
            .find(|kept| kept.hash == Some(ask.hash) && kept.time.abs_diff(time) <= window);
        // The file has had another content since. Either the report is late, or
        // the save brought an earlier content back and is not recorded yet.
        let newest = state.versions.last().map(|kept| kept.n);
        let is_older = recorded.is_some_and(|kept| Some(kept.n) != newest);
        if is_older && pending.fence.is_none() {
            return Err(Stop::Fence.into());
        }
        match recorded.map(|kept| (kept, kept.author_kind(), kept.evidence)) {
            // An editor that reloads an agent's bytes and saves them again does
            // not edit.
            Some((_, AuthorKind::Agent, Evidence::Declared)) | Some((_, _, Evidence::Editor)) => {}
            Some((kept, ..)) => {
                let (n, when) = (kept.n, kept.time);
                let decision = by_editor(&self.base.state, &path, Some(n), when, ask.formatted);
                if !decision.is_of(kept) {
                    self.base.amend_by(&path, n, decision, false);
                }
            }
            None => {
                self.base.record(Fact::Saved {
                    path: path.clone(),
                    hash: ask.hash,
                    time,
                    formatted: ask.formatted,
                });
                // A content that was held back because its writer might declare
                // it may be this save.
                let held_back = self.base.tracker.live(&path).and_then(Live::held_now);
                if held_back.is_some_and(|held| held.hash == Some(ask.hash)) {
                    self.decide_held_back(&path);
                }
            }
        }
        done(Reply::EditorDidSave(Done {}))
    }
}

impl Base {
    pub(crate) fn editor_did_close(&mut self, pending: &Pending, ask: &EditorDidClose) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        self.unsaved.remove(pending.connection(), &path);
        done(Reply::EditorDidClose(Done {}))
    }

    pub(crate) fn editor_dirty(&mut self, pending: &Pending, ask: &EditorDirty) -> Answered {
        let path = self.view().resolve(&ask.path)?;
        let most = self.config.unsaved;
        match pending.connection() {
            Some(editor) if ask.dirty => {
                if !self.unsaved.insert(editor, path, ask.lines, most) {
                    return Err(too_many(
                        most,
                        format!("an editor may hold {most} files with unsaved changes"),
                    )
                    .hint("save or close some")
                    .into());
                }
            }
            editor => self.unsaved.remove(editor, &path),
        }
        done(Reply::EditorDirty(Done {}))
    }
}

impl View<'_> {
    /// Answers `editor/didOpen`. It only checks the path and has no other
    /// effect.
    pub(crate) fn editor_did_open(&self, ask: &EditorDidOpen) -> Answered {
        self.resolve(&ask.path)?;
        done(Reply::EditorDidOpen(Done {}))
    }
}
