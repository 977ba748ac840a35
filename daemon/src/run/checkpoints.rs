//! Contents that a checkpoint names are pinned (KEEP-2).

use touchmark_engine::session_memory::Note;
use touchmark_engine::{Fact, Record, State};

use crate::store::CheckpointContents;

/// The number of a session's newest checkpoints whose contents are pinned.
const NEWEST: usize = 100;

/// Returns the contents that a checkpoint names: the current contents of the
/// session's tracked files. `None` if the fact creates no checkpoint.
pub(super) fn named(record: &Record, state: &State) -> Option<CheckpointContents> {
    let Fact::Noted {
        session,
        note: Note::CheckpointCreated { checkpoint, .. },
    } = &record.fact
    else {
        return None;
    };
    let known = state.sessions.get(session)?;
    let held = |path| state.paths.get(path)?.held.hash;
    let mut newest = known.memory.checkpoints.keys().rev().take(NEWEST);
    Some(CheckpointContents {
        session: session.clone(),
        checkpoint: *checkpoint,
        oldest: newest.next_back().copied().unwrap_or(*checkpoint),
        time: record.time,
        hashes: known.files.keys().filter_map(held).collect(),
    })
}
