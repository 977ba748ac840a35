//! An operation of git's that waits for the user, as a merge with conflicts.

use super::WorkTree;

/// The kind of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Rebase,
    CherryPick,
    Merge,
    Revert,
}

/// What git leaves in the work tree's own directory meanwhile. A rebase may
/// leave the file of a cherry-pick as well.
const SIGNS: [(&str, Waiting); 5] = [
    ("rebase-merge", Waiting::Rebase),
    ("rebase-apply", Waiting::Rebase),
    ("CHERRY_PICK_HEAD", Waiting::CherryPick),
    ("MERGE_HEAD", Waiting::Merge),
    ("REVERT_HEAD", Waiting::Revert),
];

impl Waiting {
    /// Returns the command that takes the operation back.
    pub(crate) fn abort(self) -> &'static str {
        match self {
            Self::Rebase => "git rebase --abort",
            Self::CherryPick => "git cherry-pick --abort",
            Self::Merge => "git merge --abort",
            Self::Revert => "git revert --abort",
        }
    }
}

impl WorkTree {
    /// Returns the operation that waits for the user; `None` if there is none.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        let is_there = |name: &str| self.own.join(name).symlink_metadata().is_ok();
        let mut all = SIGNS.iter();
        all.find(|(name, _)| is_there(name)).map(|(_, one)| *one)
    }
}
