//! `editor/*`.

use touchmark_proto::daemon::Done;
use touchmark_proto::editors::{EditorDidClose, EditorDidSave, EditorDirty};
use touchmark_proto::{AuthorKind, Evidence, Reply};

use super::done;
use crate::attribution::by_editor;
use crate::engine::Engine;
use crate::pending::Step;
use crate::record::Fact;

impl Engine {
    pub(super) fn editor_did_close(&mut self, ask: &EditorDidClose) -> Step {
        match self.resolve(&ask.path) {
            Ok(path) => {
                self.unsaved.remove(&path);
                done(Reply::EditorDidClose(Done {}))
            }
            Err(error) => Step::Done(Err(error)),
        }
    }

    pub(super) fn editor_dirty(&mut self, ask: &EditorDirty) -> Step {
        match self.resolve(&ask.path) {
            Ok(path) => {
                if ask.dirty {
                    self.unsaved.insert(path);
                } else {
                    self.unsaved.remove(&path);
                }
                done(Reply::EditorDirty(Done {}))
            }
            Err(error) => Step::Done(Err(error)),
        }
    }

    /// ATTR-2: the report speaks for the version it names, whether that is
    /// recorded already (a correction) or still to come.
    pub(super) fn editor_did_save(&mut self, ask: &EditorDidSave) -> Step {
        let path = match self.resolve(&ask.path) {
            Ok(path) => path,
            Err(error) => return Step::Done(Err(error)),
        };
        self.unsaved.remove(&path);
        let time = ask.time.unwrap_or(self.now).min(self.now);
        let Some(state) = self.state.paths.get(&path) else {
            return done(Reply::EditorDidSave(Done {}));
        };
        let window = self.config.editor_window;
        let recorded = state.versions.iter().rev().find(|kept| {
            kept.hash == Some(ask.hash)
                && kept.time.abs_diff(time) <= window
                && kept.fact.amends.is_none()
        });
        match recorded.map(|kept| (kept, kept.author.kind, kept.evidence)) {
            // An editor that reloads and saves an agent's bytes again does
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
                // What was held back for a declared writer may be this save.
                let held_back = self.live.get(&path).and_then(|live| live.held_back.last());
                if held_back.is_some_and(|held| held.hash == Some(ask.hash)) {
                    self.decide_held_back(&path);
                }
            }
        }
        done(Reply::EditorDidSave(Done {}))
    }
}
