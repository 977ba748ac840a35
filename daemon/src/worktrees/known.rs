//! What is remembered over restarts: which files sessions have written, and
//! which lines of other worktrees they were told of. No contents.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use touchmark_proto::{Hash, RelPath, SessionId};

use super::overlap::Lines;
use crate::system::open::replace_private;

/// The maximum number of rows of each kind; the oldest are forgotten first.
const MOST: usize = 4_096;

/// The maximum number of ranges of lines in one row.
const MOST_LINES: usize = 256;

/// What is remembered.
#[derive(Debug)]
pub(super) struct Known {
    file: PathBuf,
    durable: bool,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Rows {
    /// The files that sessions have written, the newest last.
    wrote: VecDeque<(SessionId, RelPath)>,
    told: VecDeque<Told>,
}

/// Lines of which a session was told.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Told {
    session: SessionId,
    path: RelPath,
    /// The other worktree.
    tree: PathBuf,
    /// The hash of the common content, in which the lines are counted.
    base: Hash,
    lines: Vec<Lines>,
}

impl Known {
    /// Opens what is stored in a state directory. If it cannot be read, nothing
    /// is known, and sessions may be told a second time.
    pub(super) fn open(state: &Path, durable: bool) -> Self {
        let file = state.join("worktrees.json");
        let read = || serde_json::from_slice(&fs::read(&file).ok()?).ok();
        Self {
            rows: Mutex::new(read().unwrap_or_default()),
            file,
            durable,
        }
    }

    /// Notes that a session has written files.
    pub(super) fn wrote(&self, session: &SessionId, paths: &[RelPath]) {
        let mut rows = self.rows();
        let mut is_news = false;
        for path in paths {
            let row = (session.clone(), path.clone());
            is_news |= !rows.wrote.contains(&row);
            rows.wrote.retain(|known| *known != row);
            rows.wrote.push_back(row);
        }
        let more = rows.wrote.len().saturating_sub(MOST);
        rows.wrote.drain(..more);
        if is_news {
            self.write(&rows);
        }
    }

    /// Returns the files that a session has written, the newest first.
    pub(super) fn written(&self, session: &SessionId) -> Vec<RelPath> {
        let rows = self.rows();
        let own = rows.wrote.iter().rev().filter(|(by, _)| by == session);
        own.map(|(_, path)| path.clone()).collect()
    }

    /// Returns whether a session was told of these lines already.
    pub(super) fn is_told(
        &self,
        session: &SessionId,
        path: &RelPath,
        tree: &Path,
        base: Hash,
        lines: &Lines,
    ) -> bool {
        let rows = self.rows();
        let mut told = rows.told.iter().filter(|row| row.is(session, path, tree));
        told.any(|row| {
            let has = |known: &Lines| known.start <= lines.start && lines.end <= known.end;
            row.base == base && row.lines.iter().any(has)
        })
    }

    /// Notes that a session is told of these lines.
    pub(super) fn tell(
        &self,
        session: &SessionId,
        path: &RelPath,
        tree: &Path,
        base: Hash,
        lines: &[Lines],
    ) {
        let mut rows = self.rows();
        let known = rows.told.iter().position(|row| row.is(session, path, tree));
        let known = known.and_then(|at| rows.told.remove(at));
        let mut told = Told {
            session: session.clone(),
            path: path.clone(),
            tree: tree.to_owned(),
            base,
            lines: known
                .filter(|known| known.base == base)
                .map_or(Vec::new(), |known| known.lines),
        };
        told.lines.extend(lines.iter().cloned());
        let more = told.lines.len().saturating_sub(MOST_LINES);
        told.lines.drain(..more);
        rows.told.push_back(told);
        let more = rows.told.len().saturating_sub(MOST);
        rows.told.drain(..more);
        self.write(&rows);
    }

    /// Forgets all sessions but those that `is_known` accepts.
    pub(super) fn keep(&self, is_known: impl Fn(&SessionId) -> bool) {
        let mut rows = self.rows();
        let before = rows.wrote.len() + rows.told.len();
        rows.wrote.retain(|(session, _)| is_known(session));
        rows.told.retain(|row| is_known(&row.session));
        if rows.wrote.len() + rows.told.len() < before {
            self.write(&rows);
        }
    }

    fn write(&self, rows: &Rows) {
        let written = serde_json::to_vec(rows)
            .map_err(std::io::Error::other)
            .and_then(|bytes| replace_private(&self.file, &bytes, self.durable));
        if let Err(error) = written {
            tracing::debug!("{}: {error}", self.file.display());
        }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn is(&self, session: &SessionId, path: &RelPath, tree: &Path) -> bool {
        self.session == *session && self.path == *path && self.tree == tree
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]
    use super::*;

    #[test]
    fn lines_are_told_once_over_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let (session, path) = (SessionId::new("s").unwrap(), RelPath::new(b"a").unwrap());
        let (base, tree) = (Hash::of(b"1"), Path::new("/t"));
        let known = Known::open(directory.path(), false);
        let told = |known: &Known, lines: Lines| known.is_told(&session, &path, tree, base, &lines);
        assert!(!told(&known, 1..2));
        known.tell(&session, &path, tree, base, &[1..2]);
        known.tell(&session, &path, tree, base, &[4..9]);
        known.wrote(&session, std::slice::from_ref(&path));
        let known = Known::open(directory.path(), false);
        assert!(told(&known, 1..2) && told(&known, 5..6));
        assert!(!told(&known, 1..3) && !told(&known, 3..4));
        assert!(!known.is_told(&session, &path, tree, Hash::of(b"2"), &(1..2)));
        assert!(!known.is_told(&session, &path, Path::new("/u"), base, &(1..2)));
        assert_eq!(known.written(&session), std::slice::from_ref(&path));
        known.keep(|_| false);
        assert!(!told(&Known::open(directory.path(), false), 1..2));
    }
}
