//! Requests about the worktrees of the workspace's repository (TREE).

use crate::{Author, LineRange, RelPath};

/// Lists the worktrees of the workspace's git repository, with what each has
/// changed and not merged.
#[apply(request!)]
pub struct WorktreeList {
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
}

/// The worktrees of a repository.
#[apply(answer!)]
#[derive(Default)]
pub struct WorktreeRows {
    /// The worktrees, the workspace's own first. Empty if the workspace is in
    /// no repository of this user.
    pub worktrees: Vec<WorktreeRow>,
    /// True if there are more; `None` if the list is complete.
    pub more: Option<bool>,
}

/// One worktree.
#[apply(answer!)]
pub struct WorktreeRow {
    /// The absolute path of its directory. Bytes that are not UTF-8 are
    /// replaced.
    pub path: String,
    /// The branch that is checked out; `None` if there is none, or if it is not
    /// known.
    pub branch: Option<String>,
    /// The id of its last commit; `None` if there is no commit.
    pub head: Option<String>,
    /// True for the workspace's own worktree; else `None`.
    pub current: Option<bool>,
    /// Whether a daemon serves it.
    pub daemon: bool,
    /// Why nothing is known of its changes; `None` if they are known.
    pub problem: Option<WorktreeProblem>,
    /// The number of its files that differ from the last commit that it has in
    /// common with the workspace; `None` for the workspace's own worktree, and
    /// if it is not known.
    pub changed: Option<u32>,
    /// True if not all of its changed files were compared; else `None`.
    pub more_files: Option<bool>,
    /// The files of which both worktrees have changed the same or adjacent
    /// lines, each in another way. At most 100.
    pub overlaps: Vec<WorktreeOverlap>,
}

/// Why nothing is known of a worktree's changes.
#[apply(choice!)]
pub enum WorktreeProblem {
    /// Its directory does not exist, or does not belong to the repository.
    Missing,
    /// It has no commit in common with the workspace.
    NoCommonCommit,
    /// Its file system or git did not answer in time.
    NoAnswer,
}

/// A file of which two worktrees have changed the same or adjacent lines.
#[apply(answer!)]
pub struct WorktreeOverlap {
    /// The path of the file.
    pub path: RelPath,
    /// The file's path in the other worktree, if it was renamed there; else
    /// `None`.
    pub renamed: Option<RelPath>,
    /// True if the other worktree has removed the file; else `None`.
    pub removed: Option<bool>,
    /// The changed lines in the other worktree's file. Where lines were only
    /// removed: the line before them.
    pub lines: Vec<LineRange>,
    /// The changed lines in the workspace's file, counted in the same way.
    pub own_lines: Vec<LineRange>,
    /// Who changed the lines in the other worktree, as far as its daemon runs
    /// and answers.
    pub authors: Vec<Author>,
}
