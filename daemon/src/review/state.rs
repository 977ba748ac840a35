//! The states of files that their queues are computed from, of many files at
//! once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use tokio::task::JoinSet;
use touchmark_engine::history::Step;
use touchmark_proto::files::FileSnapshot;
use touchmark_proto::{ClientPath, Error, ErrorCode, Hash, RelPath};

use super::kept::Moment;
use super::settled::Written;
use super::{Committed, aside};
use crate::undo::Undoer;

/// The number of files whose current contents are asked for at once.
const AT_ONCE: usize = 32;

impl Undoer {
    /// Returns the state that the file's queue is computed from.
    pub(super) async fn moment(
        &self,
        path: &RelPath,
        versions: &Written,
        committed: &CommittedHash,
        commits: &Committed,
    ) -> Result<Moment, Error> {
        let mut committed = word(committed);
        if versions.has_modes {
            let (commits, path) = (Arc::clone(commits), path.clone());
            let mode = aside(move || {
                let commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
                commits.mode(&path)
            });
            if let Some(mode) = mode.await? {
                committed = format!("{committed} {mode}");
            }
        }
        Ok(Moment {
            newest: versions.newest,
            committed,
        })
    }

    /// Returns the hashes of the current contents of those files whose rows are
    /// known of an earlier state.
    pub(super) async fn now_of_seen(
        &self,
        paths: impl Iterator<Item = &RelPath>,
    ) -> Result<BTreeMap<RelPath, Option<Hash>>, Error> {
        let seen: Vec<&RelPath> = paths.filter(|path| self.kept.has_seen(path)).collect();
        let mut found = BTreeMap::new();
        // The loop answers several of them in one turn.
        for some in seen.chunks(AT_ONCE) {
            let mut asked = JoinSet::new();
            for path in some {
                let (inside, path) = (self.inside.clone(), (*path).clone());
                let client = ClientPath::from(&path);
                asked.spawn(async move {
                    let now = inside.ask(FileSnapshot { path: client }).await;
                    now.map(|now| (path, now.hash))
                });
            }
            while let Some(now) = asked.join_next().await {
                match now
                    .map_err(|error| Error::new(ErrorCode::InternalError, error.to_string()))?
                {
                    Ok(now) => found.extend([now]),
                    Err(error) if error.code == ErrorCode::ShuttingDown => return Err(error),
                    // It is asked for again with the file's history.
                    Err(_) => {}
                }
            }
        }
        Ok(found)
    }
}

/// The hash of the user's committed content of a file: `None` if it is not
/// known, `Some(None)` if the commit does not have the file.
pub(super) type CommittedHash = Option<Option<Hash>>;

/// Returns the committed content of each of some files, which had these names,
/// the newest first.
pub(super) async fn committed_states(
    commits: &Committed,
    files: Vec<(RelPath, Vec<RelPath>)>,
) -> Result<BTreeMap<RelPath, CommittedHash>, Error> {
    let commits = Arc::clone(commits);
    aside(move || {
        let mut commits = commits.lock().unwrap_or_else(PoisonError::into_inner);
        let states = files.into_iter().map(|(path, names)| {
            let state = hash_of(&commits.committed_of(&names));
            (path, state)
        });
        states.collect()
    })
    .await
}

pub(super) fn hash_of(committed: &Step) -> CommittedHash {
    match committed {
        Step::NotKept => None,
        Step::Absent => Some(None),
        Step::Held(bytes) => Some(Some(Hash::of(bytes))),
    }
}

/// Returns a file's committed content as one word: its hash, `absent`, or
/// `nothing`.
fn word(committed: &CommittedHash) -> String {
    match committed {
        None => "nothing".into(),
        Some(None) => "absent".into(),
        Some(Some(hash)) => hash.to_string(),
    }
}
