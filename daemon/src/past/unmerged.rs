//! Which files have a merge conflict in git's index (UNDO-10).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use touchmark_proto::{Places, RelPath};

use super::place::top_of;
use crate::git::WorkTree;
use crate::git::index::GitIndex;
use crate::git::waiting::Waiting;
use crate::links::absolute;

/// The files with a conflict of the repositories that were needed so far, each
/// with the command that takes git's operation back; `None` for those that are
/// not trusted, or not understood.
#[derive(Default)]
pub(crate) struct Unmerged(HashMap<PathBuf, Option<Conflicts>>);

type Conflicts = (HashSet<Vec<u8>>, Option<&'static str>);

impl Unmerged {
    /// Returns why a file is in the middle of a merge; `None` if it is not, or if
    /// that cannot be found out. The root is the workspace's path.
    pub(crate) fn cause(&mut self, root: &Path, path: &RelPath, places: &Places) -> Option<String> {
        let (top, name) = top_of(&absolute(root, path))?;
        let known = self.0.entry(top.clone()).or_insert_with(|| {
            let tree = WorkTree::at(&top, places)?;
            let index = GitIndex::read(&tree.own.join("index")).ok()?;
            Some((index.unmerged(), tree.waiting().map(Waiting::abort)))
        });
        let (unmerged, abort) = known.as_ref()?;
        if !unmerged.contains(&name) {
            return None;
        }
        let back = abort.map(|abort| format!(", or take the merge back: `{abort}`"));
        Some(format!(
            "it has a merge conflict: resolve it and `git add` it first{}",
            back.unwrap_or_default()
        ))
    }
}
