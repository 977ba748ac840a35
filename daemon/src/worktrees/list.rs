//! `worktree/list`: what each worktree of the repository has changed and not
//! merged, and where that meets the own changes (TREE-5).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use touchmark_proto::RelPath;
use touchmark_proto::worktrees::{
    WorktreeList, WorktreeOverlap, WorktreeProblem, WorktreeRow, WorktreeRows,
};

use super::overlap::{Clash, Mine};
use super::trees::Tree;
use super::unmerged::{Disk, Look, Met, disk};
use super::{Worktrees, neighbour, notice};

/// The default number of rows in a list (LIM-2).
const ROWS: u32 = 1_000;

/// How long the list may take.
const LIST: Duration = Duration::from_secs(10);

/// The maximum number of files of one worktree that are compared.
const CHANGED: usize = 5_000;

/// The maximum number of overlapping files of one worktree that are listed.
const OVERLAPS: usize = 100;

/// A row with the places that it has in common with the own worktree.
struct Found {
    row: WorktreeRow,
    tree: Tree,
    met: Vec<(RelPath, Met)>,
}

impl Worktrees {
    /// Handles `worktree/list`.
    pub(crate) async fn list(self: &Arc<Self>, ask: &WorktreeList) -> WorktreeRows {
        let limit = ask.limit.unwrap_or(ROWS) as usize;
        let worktrees = Arc::clone(self);
        let found = self.apart(move || worktrees.rows(limit)).await;
        let Some((found, more)) = found.flatten() else {
            return WorktreeRows::default();
        };
        let mut rows = Vec::new();
        for Found { mut row, tree, met } in found {
            row.daemon = neighbour::socket(&self.places, &tree.root).is_some();
            for (path, met) in met {
                let clashes: Vec<&Clash> = met.clashes.iter().collect();
                let own = clashes.iter().map(|clash| Clash {
                    theirs: clash.own.clone(),
                    ..(*clash).clone()
                });
                let own: Vec<Clash> = own.collect();
                let is_removed = met.unmerged.bytes.is_none();
                row.overlaps.push(WorktreeOverlap {
                    own_lines: notice::ranges(&own.iter().collect::<Vec<_>>()),
                    lines: match is_removed {
                        true => Vec::new(),
                        false => notice::ranges(&clashes),
                    },
                    renamed: (met.unmerged.path != path).then(|| met.unmerged.path.clone()),
                    removed: is_removed.then_some(true),
                    authors: self.authors(&met, &clashes).await,
                    path,
                });
            }
            rows.push(row);
        }
        WorktreeRows {
            worktrees: rows,
            more: more.then_some(true),
        }
    }

    fn rows(&self, limit: usize) -> Option<(Vec<Found>, bool)> {
        let mut look = Look::begin(self, Some(LIST))?;
        let own = look.own();
        let others = look.others();
        let mut rows = vec![Found {
            row: WorktreeRow {
                current: Some(true),
                path: self.root.to_string_lossy().into_owned(),
                ..row(&mut look, &own)
            },
            tree: own.clone(),
            met: Vec::new(),
        }];
        let mut more = false;
        for tree in others {
            if rows.len() >= limit {
                more = true;
                break;
            }
            let mut found = Found {
                row: row(&mut look, &tree),
                met: Vec::new(),
                tree,
            };
            if let Err(problem) = self.compare(&mut look, &own, &mut found) {
                found.row.problem = Some(problem);
            }
            rows.push(found);
        }
        more |= rows.len() > limit;
        rows.truncate(limit);
        Some((rows, more))
    }

    fn compare(
        &self,
        look: &mut Look<'_>,
        own: &Tree,
        found: &mut Found,
    ) -> Result<(), WorktreeProblem> {
        let tree = &found.tree;
        match look.is_there(tree) {
            None => return Err(WorktreeProblem::NoAnswer),
            Some(false) => return Err(WorktreeProblem::Missing),
            Some(true) => {}
        }
        let base = look.base(tree).ok_or(WorktreeProblem::NoCommonCommit)?;
        let late = |_| WorktreeProblem::NoAnswer;
        let candidates = look.candidates(tree, &base).ok_or(()).map_err(late)?;
        if candidates.len() > CHANGED {
            found.row.more_files = Some(true);
        }
        let mut changed = 0;
        let mine: BTreeSet<RelPath> = look
            .candidates(own, &base)
            .unwrap_or_default()
            .into_iter()
            .collect();
        for path in candidates.into_iter().take(CHANGED) {
            if look.is_over() {
                found.row.more_files = Some(true);
                break;
            }
            if look.differs(tree, &path, &base) != Some(true) {
                continue;
            }
            changed += 1;
            if !mine.contains(&path) || self.reader.is_secret(&path) {
                continue;
            }
            let bytes = match disk(&self.root, &path) {
                Disk::Held(bytes) => bytes,
                Disk::Absent => Vec::new(),
                Disk::Other => continue,
            };
            if let Some(met) = look.met(tree, &path, &bytes, &Mine::All) {
                match found.met.len() < OVERLAPS {
                    true => found.met.push((path, met)),
                    false => found.row.more_files = Some(true),
                }
            }
        }
        found.row.changed = Some(changed);
        Ok(())
    }
}

fn row(look: &mut Look<'_>, tree: &Tree) -> WorktreeRow {
    WorktreeRow {
        path: tree.shown(),
        branch: tree.branch(),
        head: look.id(&tree.head()),
        current: None,
        daemon: false,
        problem: None,
        changed: None,
        more_files: None,
        overlaps: Vec::new(),
    }
}
