//! Edits, from their beginning to their end.

use super::{ENDED_KEPT, Edit, EditFile, EndedEdit, State};
use crate::ledger::record::EditFact;
use touchmark_proto::events::EditPhase;
use touchmark_proto::{Hash, Millis, RelPath, SessionId};

impl State {
    pub(super) fn edit_begun(&mut self, n: u64, time: Millis, fact: &EditFact) {
        self.edits_begun = self.edits_begun.max(fact.edit);
        let owner = self.session_mut(&fact.session, time);
        owner.edits += 1;
        for file in &fact.files {
            owner.files.change(&file.path, |knowledge| {
                knowledge.copied = false;
                if fact.step.is_some() {
                    knowledge.record.step = fact.step;
                }
            });
        }
        let files = fact
            .files
            .iter()
            .map(|file| EditFile {
                path: file.path.clone(),
                expect: file.expect,
                began: file.began,
                matched: None,
                name: Some(self.names.last_used(&fact.session, &file.path))
                    .filter(|name| **name != file.path)
                    .cloned(),
                parted: None,
            })
            .collect();
        self.edits.insert(
            fact.edit,
            Edit {
                fact: fact.clone(),
                n,
                files,
            },
        );
    }

    /// Returns whether a content that is about to be recorded was already on
    /// the disk when an edit began. It was held back, and belongs to its
    /// writer, not to the edit (ATTR-16).
    pub(crate) fn was_there(
        &self,
        path: &RelPath,
        edit: &Edit,
        file: &EditFile,
        hash: Option<Hash>,
    ) -> bool {
        let newest = self.paths.get(path).map_or(0, |state| state.newest);
        file.began == hash && newest < edit.n
    }

    pub(super) fn edit_ended(&mut self, number: u64, paths: &[RelPath], phase: EditPhase) {
        let Some(edit) = self.edits.get_mut(&number) else {
            return;
        };
        edit.files.retain(|file| !paths.contains(&file.path));
        let (begun, done) = (edit.n, edit.files.is_empty());
        let session = edit.fact.session.clone();
        if phase == EditPhase::Aborted {
            for path in paths {
                self.rule_out(path, &session, begun, Some(number));
            }
        }
        if !done {
            return;
        }
        if let Some(edit) = self.edits.remove(&number) {
            self.ended.push_back(EndedEdit {
                edit: number,
                session: edit.fact.session,
                call: edit.fact.call,
            });
            if self.ended.len() > ENDED_KEPT {
                self.ended.pop_front();
            }
        }
    }

    /// Records that versions of a path since fact `since` are not the
    /// session's: its mark ended with another content, or with none. Does
    /// nothing if another mark of the session is open on the path (ATTR-4).
    pub(super) fn rule_out(
        &mut self,
        path: &RelPath,
        session: &SessionId,
        since: u64,
        mark: Option<u64>,
    ) {
        let another = self.edits_on(path).any(|(edit, file)| {
            let own = edit.fact.session == *session && file.expect.is_none();
            own && Some(edit.fact.edit) != mark
        });
        let versions = self.paths.get_mut(path).map(|path| &mut path.versions);
        for kept in versions.into_iter().flatten().filter(|kept| kept.n > since) {
            if !another {
                kept.rule_out(session);
            }
        }
    }
}
