//! `file/recent`, `file/isStale`: age counted in the agent's steps. The age
//! says nothing about contents.

use touchmark_proto::files::{FileAge, FileIsStale, FileRecent, FileRecords};
use touchmark_proto::{RelPath, Reply, SessionId};

use super::number_cursor;
use crate::effect::Answer;
use crate::ledger::state::State;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::view::View;

impl View<'_> {
    /// Answers `file/recent`: the session's files by their last access, the
    /// newest first.
    pub(crate) fn file_recent(&self, pending: &mut Pending, ask: &FileRecent) -> Answered {
        if let Some(paths) = self.verify_paths(pending, &ask.session) {
            return Err(Stop::Read(paths, false).into());
        }
        let from = match number_cursor(ask.cursor.as_deref()) {
            Ok(from) => usize::try_from(from).unwrap_or(usize::MAX),
            Err(error) => return Err(error.into()),
        };
        let limit = ask.limit.unwrap_or(self.config.list_limit) as usize;
        let mut recent: Vec<(u64, u64, RelPath)> = self
            .state
            .sessions
            .get(&ask.session)
            .into_iter()
            .flat_map(|session| session.files.iter())
            .filter_map(|(path, knowledge)| {
                let step = knowledge.record.step?;
                (ask.step.saturating_sub(step) <= ask.max_age)
                    .then(|| (step, knowledge.record.time, path.clone()))
            })
            .collect();
        recent.sort_by(|a, b| (b.0, b.1, &a.2).cmp(&(a.0, a.1, &b.2)));
        let next = from.saturating_add(limit);
        let more = (next < recent.len()).then(|| next.to_string());
        let mut files = Vec::new();
        let mut previews = Vec::new();
        for (_, _, path) in recent.into_iter().skip(from).take(limit) {
            for (record, hash) in self.records(&ask.session, &path, false) {
                previews.extend(hash.map(|hash| (files.len(), hash)));
                files.push(record);
            }
        }
        Ok(Answer {
            reply: Reply::FileRecent(FileRecords {
                files,
                more,
                pending: pending.late(),
            }),
            lines: Vec::new(),
            previews,
        })
    }

    pub(crate) fn file_is_stale(&self, ask: &FileIsStale) -> Answered {
        let path = self.resolve(&ask.path)?;
        let age = age_in_steps(self.state, &ask.session, &path, ask.step);
        done(Reply::FileIsStale(FileAge {
            stale: age.is_none_or(|age| age > ask.max_age),
            age,
        }))
    }
}

/// Returns the steps since the session's last access to a file, or `None` if no
/// access named a step.
pub(super) fn age_in_steps(
    state: &State,
    session: &SessionId,
    path: &RelPath,
    step: u64,
) -> Option<u64> {
    let last = state.knowledge(session, path)?.record.step?;
    Some(step.saturating_sub(last))
}
