//! The states of files that their queues are computed from, of many files at
//! once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use touchmark_proto::{Error, Hash, RelPath};

use super::Committed;
use super::kept::Moment;
use super::known::{Asked, CommittedState};
use crate::context::aside;
use crate::guard::Name;
use crate::undo::Undoer;

impl Undoer {
    /// Returns the hashes of the current contents of those files whose rows are
    /// known of an earlier state; `None` for no file.
    pub(super) async fn now_of_seen(
        &self,
        paths: impl Iterator<Item = &RelPath>,
    ) -> Result<BTreeMap<RelPath, Option<Hash>>, Error> {
        let seen = paths.filter(|path| self.kept.has_seen(path)).cloned();
        let (seen, replacer): (Vec<RelPath>, _) = (seen.collect(), self.replacer.clone());
        aside(move || {
            let now = seen.into_iter().map(|path| {
                let name = Name { path, real: None };
                let now = replacer.holds(&name);
                (name.path, now)
            });
            now.collect()
        })
        .await
    }
}

impl CommittedState {
    /// Returns the state that the queue of a file is computed from, whose newest
    /// fact has the number `newest`.
    pub(super) fn moment(&self, newest: u64) -> Moment {
        let committed = match &self.hash {
            None => "nothing".into(),
            Some(None) => "absent".into(),
            Some(Some(hash)) => hash.to_string(),
        };
        Moment {
            newest,
            committed: match self.mode {
                Some(mode) => format!("{committed} {mode}"),
                None => committed,
            },
        }
    }
}

/// Returns what the user has committed of each file.
pub(super) async fn committed(
    commits: &Committed,
    files: Vec<(RelPath, Asked)>,
) -> Result<BTreeMap<RelPath, CommittedState>, Error> {
    let commits = Arc::clone(commits);
    aside(move || {
        let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
        commits.states(files)
    })
    .await
}
