//! When commits were made, and whether a command of an agent ran then (REV-2).

use std::collections::HashMap;

use touchmark_proto::Millis;
use touchmark_proto::commands::CommandRow;

use crate::git::reflog::Move;
use crate::git::{Commit, WorkTree};
use crate::past::Blobs;

/// How far the time of a new file may be behind the daemon's clock, in
/// milliseconds: the kernel takes it from its last tick, and the daemon's clock
/// is not set back with the system's. In doubt a commit is the agent's, since
/// then nothing is kept unseen.
const BEHIND: Millis = 200;

/// The times of commits and of agents' commands.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// When agents' commands ran.
    windows: Vec<(Millis, Millis)>,
    /// When the commits were stored that were made in this work tree. Only those
    /// that git has not packed yet.
    stored: HashMap<String, Millis>,
}

impl Times {
    /// Reads when commits were stored. `moves` are those of `HEAD`.
    pub(super) fn of(tree: &WorkTree, moves: &[Move], commands: &[CommandRow]) -> Self {
        let windows = commands
            .iter()
            .map(|row| (row.begun_at, row.ended_at.unwrap_or(Millis::MAX)))
            .collect();
        let objects = Blobs::of(&tree.common);
        let stored = moves.iter().filter_map(|one| {
            let since = objects.made(one)?;
            Some((one.id.clone(), Millis::try_from(since / 1_000_000).ok()?))
        });
        Self {
            windows,
            stored: stored.collect(),
        }
    }

    /// Returns when the first command began.
    pub(super) fn oldest(&self) -> Option<Millis> {
        self.windows.iter().map(|(begin, _)| *begin).min()
    }

    /// Returns the first and the last millisecond in which a commit may have been
    /// made. The committer may choose any time (`GIT_COMMITTER_DATE`), so it
    /// counts only where it is not known when the commit was stored.
    pub(super) fn made(&self, commit: &Commit) -> (Millis, Millis) {
        self.at(&commit.id, commit.time)
    }

    /// Returns whether a command of an agent ran when a commit was made.
    pub(super) fn is_agents(&self, commit: &Commit) -> bool {
        self.is_during(self.made(commit))
    }

    /// Returns whether a command of an agent ran when `HEAD` was moved.
    pub(super) fn is_moved_by_agent(&self, one: &Move) -> bool {
        self.is_during(self.at(&one.id, one.second))
    }

    fn at(&self, id: &str, second: Millis) -> (Millis, Millis) {
        match self.stored.get(id) {
            Some(stored) => (*stored, stored.saturating_add(BEHIND)),
            None => {
                let begin = second.saturating_mul(1_000);
                (begin, begin.saturating_add(999))
            }
        }
    }

    fn is_during(&self, (first, last): (Millis, Millis)) -> bool {
        let mut windows = self.windows.iter();
        windows.any(|(begin, end)| *begin <= last && first <= *end)
    }
}
