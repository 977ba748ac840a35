//! Edits, from their beginning to their end.

use super::{ENDED_KEPT, Edit, EditFile, EndedEdit, State};
use crate::record::EditFact;
use touchmark_proto::{Millis, RelPath};

impl State {
    pub(super) fn edit_begun(&mut self, n: u64, time: Millis, fact: &EditFact) {
        self.edits_begun = self.edits_begun.max(fact.edit);
        let owner = self.session_mut(&fact.session, time);
        owner.edits += 1;
        for file in &fact.files {
            if let Some(knowledge) = owner.files.get_mut(&file.path) {
                knowledge.copied = false;
                if fact.step.is_some() {
                    knowledge.record.step = fact.step;
                }
            }
        }
        let files = fact
            .files
            .iter()
            .map(|file| EditFile {
                path: file.path.clone(),
                expect: file.expect,
                began: file.began,
                matched: None,
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

    pub(super) fn edit_ended(&mut self, number: u64, paths: &[RelPath]) {
        let Some(edit) = self.edits.get_mut(&number) else {
            return;
        };
        edit.files.retain(|file| !paths.contains(&file.path));
        if !edit.files.is_empty() {
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
}
