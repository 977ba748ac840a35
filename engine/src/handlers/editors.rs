//! `editor/*`: reports of editors about opened, changed and saved files.

use std::collections::BTreeMap;

use touchmark_proto::daemon::Done;
use touchmark_proto::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use touchmark_proto::{AuthorKind, ConnectionId, Evidence, LineRange, RelPath, Reply};

use crate::attribution::by_editor;
use crate::engine::Engine;
use crate::ledger::record::Fact;
use crate::requests::limits::too_many;
use crate::requests::pending::{Pending, Step, done};
use crate::tracker::live::Live;
use crate::view::View;

/// The files with unsaved changes in one editor, each with the changed lines if
/// the editor named them.
pub(crate) type Unsaved = BTreeMap<RelPath, Option<LineRange>>;

impl Engine {
    pub(crate) fn editor_did_close(&mut self, pending: &Pending, ask: &EditorDidClose) -> Step {
        match self.view().resolve(&ask.path) {
            Ok(path) => {
                self.no_longer_unsaved(pending, &path);
                done(Reply::EditorDidClose(Done {}))
            }
            Err(error) => Step::Done(Err(error)),
        }
    }

    pub(crate) fn editor_dirty(&mut self, pending: &Pending, ask: &EditorDirty) -> Step {
        let path = match self.view().resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        match pending.connection {
            Some(connection) if ask.dirty => {
                let own = self.unsaved.entry(connection).or_default();
                let most = self.config.unsaved;
                if own.len() >= most && !own.contains_key(&path) {
                    return Step::Done(Err(too_many(
                        most,
                        format!("an editor may hold {most} files with unsaved changes"),
                    )
                    .hint("save or close some")));
                }
                own.insert(path, ask.lines);
            }
            _ => self.no_longer_unsaved(pending, &path),
        }
        done(Reply::EditorDirty(Done {}))
    }

    /// Forgets the unsaved changes of an editor whose connection has ended.
    pub(crate) fn editor_gone(&mut self, connection: ConnectionId) {
        self.unsaved.remove(&connection);
    }

    /// Forgets that this editor has unsaved changes of a file. Another editor
    /// may still have some.
    fn no_longer_unsaved(&mut self, pending: &Pending, path: &RelPath) {
        if let Some(connection) = pending.connection
            && let Some(own) = self.unsaved.get_mut(&connection)
        {
            own.remove(path);
            if own.is_empty() {
                self.unsaved.remove(&connection);
            }
        }
    }

    /// Records an editor's report of a save (ATTR-2). The report explains the
    /// version with its content, whether that is recorded already (as a
    /// correction) or later.
    pub(crate) fn editor_did_save(&mut self, pending: &Pending, ask: &EditorDidSave) -> Step {
        let path = match self.view().resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        self.no_longer_unsaved(pending, &path);
        let time = ask.time.unwrap_or(self.now).min(self.now);
        let Some(state) = self.state.paths.get(&path) else {
            self.saved_untracked(path, ask.hash);
            return done(Reply::EditorDidSave(Done {}));
        };
        let window = self.config.editor_window;
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
            return Step::Fence;
        }
        match recorded.map(|kept| (kept, kept.author_kind(), kept.evidence)) {
            // An editor that reloads an agent's bytes and saves them again does
            // not edit.
            Some((_, AuthorKind::Agent, Evidence::Declared)) | Some((_, _, Evidence::Editor)) => {}
            Some((kept, ..)) => {
                let (n, when) = (kept.n, kept.time);
                let decision = by_editor(&self.state, &path, Some(n), when, ask.formatted);
                if !decision.is_of(kept) {
                    self.amend_by(&path, n, decision, false);
                }
            }
            None => {
                self.record(Fact::Saved {
                    path: path.clone(),
                    hash: ask.hash,
                    time,
                    formatted: ask.formatted,
                });
                // A content that was held back because its writer might declare
                // it may be this save.
                let held_back = self.tracker.live(&path).and_then(Live::held_now);
                if held_back.is_some_and(|held| held.hash == Some(ask.hash)) {
                    self.decide_held_back(&path);
                }
            }
        }
        done(Reply::EditorDidSave(Done {}))
    }
}

impl View<'_> {
    /// Answers `editor/didOpen`. It only checks the path and has no other
    /// effect.
    pub(crate) fn editor_did_open(&self, ask: &EditorDidOpen) -> Step {
        match self.resolve(&ask.path) {
            Ok(_) => done(Reply::EditorDidOpen(Done {})),
            Err(error) => Step::Done(Err(error)),
        }
    }

    /// Returns whether a connected editor has unsaved changes of a file: `None`
    /// if none has; else the lines that all editors together change, or
    /// `Some(None)` if one of them has not named its lines.
    pub(crate) fn unsaved(&self, path: &RelPath) -> Option<Option<LineRange>> {
        let told = self.unsaved.values().filter_map(|own| own.get(path));
        told.copied().reduce(|one, other| {
            let (one, other) = (one?, other?);
            Some(LineRange {
                start: one.start.min(other.start),
                end: one.end.max(other.end),
            })
        })
    }
}
