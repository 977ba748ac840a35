//! `editor/*`.

use std::collections::BTreeMap;

use touchmark_proto::daemon::Done;
use touchmark_proto::editors::{EditorDidClose, EditorDidOpen, EditorDidSave, EditorDirty};
use touchmark_proto::{AuthorKind, ConnectionId, Evidence, LineRange, RelPath, Reply};

use super::done;
use crate::attribution::by_editor;
use crate::engine::Engine;
use crate::ledger::record::Fact;
use crate::requests::limits::too_many;
use crate::requests::pending::{Pending, Step};
use crate::tracker::live::Live;
use crate::view::View;

/// The files in which one editor holds unsaved changes, and which lines of
/// them, where it has said so.
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

    /// An editor that is gone holds no unsaved changes any more.
    pub(crate) fn editor_gone(&mut self, connection: ConnectionId) {
        self.unsaved.remove(&connection);
    }

    /// This editor holds no unsaved changes of it; another one may.
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

    /// ATTR-2: the report speaks for the version it names, whether that is
    /// recorded already (a correction) or still to come.
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
        match recorded.map(|kept| (kept, kept.author_kind(), kept.evidence)) {
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
    /// It says nothing yet; only the path is looked at.
    pub(crate) fn editor_did_open(&self, ask: &EditorDidOpen) -> Step {
        match self.resolve(&ask.path) {
            Ok(_) => done(Reply::EditorDidOpen(Done {})),
            Err(error) => Step::Done(Err(error)),
        }
    }

    /// Whether some editor that is still connected holds unsaved changes, and
    /// the lines that all of them together change, where each has said which.
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
