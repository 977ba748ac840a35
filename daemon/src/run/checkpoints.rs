//! What a checkpoint names stays (KEEP-2).

use touchmark_engine::session_memory::Note;
use touchmark_engine::{Fact, Record, State};

use crate::store::CheckpointContents;

/// So many of a session's checkpoints, the newest, keep what they name.
const NEWEST: usize = 100;

/// What a checkpoint names: what the files that its session holds hold now.
/// `None` where the fact creates none.
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
