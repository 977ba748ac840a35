//! Which files have a merge conflict in git's index (UNDO-10).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use touchmark_proto::{Places, RelPath};

use super::place::top_of;
use crate::git::WorkTree;
use crate::git::index::GitIndex;
use crate::links::absolute;

/// What git leaves in its directory while an operation waits for the user, and
/// the command that takes the operation back.
const OPERATIONS: [(&str, &str); 5] = [
    ("rebase-merge", "git rebase --abort"),
    ("rebase-apply", "git rebase --abort"),
    ("CHERRY_PICK_HEAD", "git cherry-pick --abort"),
    ("REVERT_HEAD", "git revert --abort"),
    ("MERGE_HEAD", "git merge --abort"),
];

/// The indexes of the repositories that were needed so far, each with the
/// command that takes git's operation back; `None` for those that are not
/// trusted, or not understood.
#[derive(Default)]
pub(crate) struct Unmerged(HashMap<PathBuf, Option<(GitIndex, Option<&'static str>)>>);

impl Unmerged {
    /// Returns why a file is in the middle of a merge; `None` if it is not, or if
    /// that cannot be found out. The root is the workspace's path.
    pub(crate) fn cause(&mut self, root: &Path, path: &RelPath, places: &Places) -> Option<String> {
        let (top, name) = top_of(&absolute(root, path))?;
        let known = self.0.entry(top.clone()).or_insert_with(|| {
            let tree = WorkTree::at(&top, places)?;
            let index = GitIndex::read(&tree.own.join("index")).ok()?;
            let mut all = OPERATIONS.iter();
            let found = all.find(|(file, _)| tree.own.join(file).symlink_metadata().is_ok());
            Some((index, found.map(|(_, abort)| *abort)))
        });
        let (index, abort) = known.as_ref()?;
        if !index.entry_of(&name)?.is_unmerged() {
            return None;
        }
        let back = abort.map(|abort| format!(", or take the merge back: `{abort}`"));
        Some(format!(
            "it has a merge conflict: resolve it and `git add` it first{}",
            back.unwrap_or_default()
        ))
    }
}
