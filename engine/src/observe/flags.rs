//! One-call marks, and the closes that use them up (ATTR-8).

use crate::attribution::unclaimed;
use crate::ledger::record::Fact;
use crate::parts::Core;
use crate::view::View;
use touchmark_proto::events::EditPhase;
use touchmark_proto::{Evidence, RelPath, SessionId};

impl Core {
    /// Handles a close after which the content is the recorded one.
    ///
    /// There are two cases. Either this is the close of the write that was read
    /// in the middle; it uses up the one-call mark that claimed the content. Or
    /// an earlier close used up the mark. Then an unchanged stat shows that the
    /// content read at that time was already the later writer's: between an
    /// agent's close and a user's next write there may be no time for a read.
    pub(super) fn close_without_change(
        &mut self,
        path: &RelPath,
        untouched: bool,
        written_closes: u32,
    ) {
        let newest = self
            .base
            .state
            .paths
            .get(path)
            .map_or(0, |state| state.newest);
        let mut left = written_closes.max(1);
        while left > 0 {
            let Some(edit) = self.base.view().oldest_mark(path) else {
                break;
            };
            self.consume_mark(path, edit, Some(newest));
            left -= 1;
        }
        let save = &mut self.base.tracker.live_mut(path).save;
        if left > 0 && untouched && save.consumed == Some(newest) {
            save.consumed = None;
            // An editor's report or a commit that has named the author since is
            // better evidence.
            let marked = self
                .base
                .state
                .paths
                .get(path)
                .and_then(|state| state.latest());
            if marked.is_none_or(|kept| kept.evidence != Evidence::Marked) {
                return;
            }
            let hash = self.base.view().current(path, None).held.hash;
            let decision = unclaimed(
                &self.base.state,
                &self.base.witnesses,
                path,
                hash,
                self.base.now,
            );
            self.base.amend_by(path, newest, decision, false);
        }
    }

    /// Ends one-call marks, one for each closed change, the oldest first
    /// (ATTR-8).
    pub(super) fn consume_marks(&mut self, path: &RelPath, closes: u32, version: u64) {
        for _ in 0..closes {
            let Some(edit) = self.base.view().oldest_mark(path) else {
                return;
            };
            self.consume_mark(path, edit, Some(version));
        }
    }

    pub(super) fn consume_mark(&mut self, path: &RelPath, edit: u64, version: Option<u64>) {
        let spoke = version.and_then(|n| {
            let state = self.base.state.paths.get(path)?;
            let kept = state.versions.iter().find(|kept| kept.n == n)?;
            (kept.edit() == Some(edit)).then_some((n, kept.hash))
        });
        if let (Some((n, hash)), Some(session)) = (spoke, self.base.view().edit_session(edit)) {
            self.base.record(Fact::Wrote {
                session,
                path: path.clone(),
                hash: hash.into(),
                assumed: true,
            });
            self.base.tracker.live_mut(path).save.consumed = Some(n);
        }
        self.end_edit(edit, std::slice::from_ref(path), EditPhase::Committed);
    }
}

impl View<'_> {
    pub(super) fn oldest_mark(&self, path: &RelPath) -> Option<u64> {
        self.state
            .edits_on(path)
            .find(|(edit, file)| edit.fact.one_shot && file.expect.is_none())
            .map(|(edit, _)| edit.fact.edit)
    }

    pub(super) fn edit_session(&self, edit: u64) -> Option<SessionId> {
        Some(self.state.edits.get(&edit)?.fact.session.clone())
    }
}
