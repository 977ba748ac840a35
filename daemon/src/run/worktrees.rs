//! `worktree/list`, which is answered in a separate task.

use std::sync::Arc;

use touchmark_proto::worktrees::WorktreeList;
use touchmark_proto::{Reply, RequestId};

use super::Daemon;
use crate::event::Event;

impl Daemon {
    /// Answers `worktree/list`.
    pub(super) fn worktree_list(&self, request: RequestId, ask: WorktreeList) {
        let (events, worktrees) = (self.events.clone(), Arc::clone(&self.worktrees));
        tokio::spawn(async move {
            let rows = worktrees.list(&ask).await;
            let _loop_has_ended = events.send(Event::Answered {
                request,
                outcome: Ok(Reply::WorktreeList(rows)),
            });
        });
    }
}
