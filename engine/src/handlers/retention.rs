//! `retention/rank`: decides which tool results may leave a context, and in
//! which order. What the session wrote is never cut. Results that can be
//! produced again go first. A result whose file has changed since is worth
//! nothing.

use touchmark_proto::files::Source;
use touchmark_proto::retention::{
    Priority, RankedItem, RetentionAction, RetentionItem, RetentionRank, RetentionRanked,
};
use touchmark_proto::{Error, RelPath, Reply, SessionId, State};

use super::steps::age_in_steps;
use crate::base::Base;
use crate::requests::pending::{Answered, Pending, done};
use crate::text::shown::show_bare;

/// Tools that write. Their results are the session's own work.
const WRITES: &[&str] = &["create_file", "edit_file", "write_file"];
/// Tools that read a file.
const READS: &[&str] = &["read_file"];
/// Tools that can be run again for the same result.
const RERUNNABLE: &[&str] = &["search_files", "execute_bash", "grep", "bash"];

/// The maximum number of results in one request.
const ITEMS: usize = 10_000;

impl Base {
    pub(crate) fn retention_rank(
        &mut self,
        pending: &mut Pending,
        ask: &RetentionRank,
    ) -> Answered {
        if ask.items.len() > ITEMS {
            return Err(
                Error::invalid(format!("more than {ITEMS} items: rank them in parts")).into(),
            );
        }
        let mut paths = Vec::with_capacity(ask.items.len());
        for item in &ask.items {
            match item
                .path
                .as_ref()
                .map(|path| self.view().resolve(path))
                .transpose()
            {
                Ok(path) => paths.push(path),
                Err(error) => return Err(error.into()),
            }
        }
        let items = ask
            .items
            .iter()
            .zip(&paths)
            .map(|(item, path)| self.rank(pending, ask, item, path.as_ref()))
            .collect();
        done(Reply::RetentionRank(RetentionRanked { items }))
    }

    fn rank(
        &self,
        pending: &Pending,
        ask: &RetentionRank,
        item: &RetentionItem,
        path: Option<&RelPath>,
    ) -> RankedItem {
        let session = &ask.session;
        let priority = self.priority(session, item, path);
        let keep = match priority {
            Priority::Never => true,
            Priority::Read | Priority::Mentioned | Priority::Other | Priority::Rerunnable => {
                let changed = path.is_some_and(|path| {
                    let state = self
                        .view()
                        .file_state(session, path, pending.reads.found.get(path))
                        .state;
                    matches!(state, State::Stale | State::Deleted)
                });
                // A file that was accessed recently elsewhere is still in use,
                // however old this result is.
                let age = path
                    .and_then(|path| age_in_steps(&self.state, session, path, ask.step))
                    .unwrap_or(u64::MAX)
                    .min(ask.step.saturating_sub(item.step));
                !changed && age <= kept_for(priority, ask.max_age)
            }
        };
        let (action, text, hint) = if keep {
            (RetentionAction::Keep, None, None)
        } else {
            let (text, hint) = self.stub(ask, item, path);
            (RetentionAction::Stub, Some(text), hint)
        };
        RankedItem {
            id: item.id.clone(),
            priority,
            rank: priority as u32,
            action,
            text,
            hint,
        }
    }

    fn priority(
        &self,
        session: &SessionId,
        item: &RetentionItem,
        path: Option<&RelPath>,
    ) -> Priority {
        let tool = item.tool.as_str();
        let read = READS.contains(&tool);
        let knowledge = path.and_then(|path| self.state.knowledge(session, path));
        let wrote = knowledge
            .as_ref()
            .is_some_and(|knowledge| knowledge.edit_at.is_some());
        // A mention by `file/mention` counts too.
        let mentioned = knowledge.is_some_and(|knowledge| {
            let mut records = knowledge.past.iter().chain([&knowledge.record]);
            records.any(|record| record.source == Source::FileMentioned)
        });
        if WRITES.contains(&tool) || (read && wrote) {
            Priority::Never
        } else if item.mentioned || mentioned {
            Priority::Mentioned
        } else if read {
            Priority::Read
        } else if RERUNNABLE.contains(&tool) {
            Priority::Rerunnable
        } else {
            Priority::Other
        }
    }

    /// Returns the text that replaces a result, and a remark about it if there
    /// is one.
    fn stub(
        &self,
        ask: &RetentionRank,
        item: &RetentionItem,
        path: Option<&RelPath>,
    ) -> (String, Option<String>) {
        let (Some(named), true) = (path, READS.contains(&item.tool.as_str())) else {
            let tool = show_bare(&item.tool);
            return (
                format!("[Output truncated, run {tool} again if needed]"),
                None,
            );
        };
        let lines = item.lines.unwrap_or_else(|| {
            self.state
                .knowledge(&ask.session, named)
                .map_or(0, |knowledge| knowledge.record.lines)
        });
        let path = show_bare(&named.to_string_lossy());
        let age = ask.step.saturating_sub(item.step);
        (
            format!("[File: {path} ({lines} lines) - content truncated, use read_file to re-read]"),
            Some(format!(
                "[File content truncated. To see current content, call read_file again.\n\
                 Path: {path}\nLast read: {age} steps ago\nLines: {lines}]"
            )),
        )
    }
}

/// Returns the number of steps that a result of this priority is kept after the
/// last access to its file. Results that the user mentioned are kept twice as
/// long as others, results that can be produced again half as long.
fn kept_for(priority: Priority, max_age: u64) -> u64 {
    match priority {
        Priority::Mentioned => max_age.saturating_mul(2),
        Priority::Rerunnable => max_age / 2,
        _ => max_age,
    }
}
