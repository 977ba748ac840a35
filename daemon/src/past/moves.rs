//! What the moves of `HEAD` did to the files.
//!
//! Git's log of them may have been part of a copy of the repository, so it is
//! untrusted input. It only says where to look: contents decide.

use std::collections::HashMap;
use std::time::Duration;

use crate::git::WorkTree;
use crate::git::index::ObjectId;
use crate::survival::reflog::Move;

/// How long git may take to compare two commits.
const TIME: Duration = Duration::from_secs(20);

/// The most bytes that it may print about it: some 200,000 files.
const PRINTED: u64 = 200_000 * 256;

/// The blobs of one move, by path relative to the repository's top: the old and
/// the new one; `None` for no file.
pub(super) type Changed = HashMap<Vec<u8>, (Option<ObjectId>, Option<ObjectId>)>;

/// The kinds of moves, as far as they matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A switch, or another checkout of a commit. Forced, it destroys what is
    /// not committed.
    Switch,
    /// Another way from one whole state to another: a pull, merge, rebase or
    /// cherry-pick.
    Carries,
    /// A commit, a reset, a revert, and what is not known.
    Other,
}

impl Kind {
    pub(super) fn of(one: &Move) -> Self {
        let word = one.why.split([' ', ':']).next().unwrap_or_default();
        match word {
            "checkout" => Self::Switch,
            "pull" | "merge" | "rebase" | "cherry-pick" => Self::Carries,
            _ => Self::Other,
        }
    }
}

/// Returns which files a move changed; `None` if git cannot tell.
pub(super) fn changed(tree: &WorkTree, one: &Move) -> Option<Changed> {
    let before = one.before.as_ref()?;
    let git = tree.git(&tree.top).ok()?;
    let git = git
        .args(["diff-tree", "-r", "-z", "--raw", "--no-renames"])
        .args(["--no-abbrev", "--no-ext-diff", before, &one.id]);
    Some(parsed(&git.within(TIME, PRINTED).printed()?))
}

/// Returns the paths in the output of `diff-tree --raw -z`, each with its blobs.
fn parsed(listed: &[u8]) -> Changed {
    let mut fields = listed.split(|byte| *byte == 0);
    let mut changed = Changed::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let mut words = head.split(|byte| *byte == b' ').skip(2);
        let mut id = || {
            let id = ObjectId::from_digits(str::from_utf8(words.next()?).ok()?)?;
            id.as_bytes().iter().any(|byte| *byte != 0).then_some(id)
        };
        let both = (id(), id());
        changed.insert(path.to_vec(), both);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_has_a_kind() {
        let kind = |why: &str| {
            Kind::of(&Move {
                before: None,
                id: String::new(),
                second: 17,
                why: why.to_owned(),
            })
        };
        assert_eq!(kind("pull -q . up: Fast-forward"), Kind::Carries);
        assert_eq!(kind("rebase (pick): one"), Kind::Carries);
        assert_eq!(kind("checkout: moving from a to b"), Kind::Switch);
        for why in [
            "commit (amend): x",
            "reset: moving to HEAD",
            "revert: x",
            "",
        ] {
            assert_eq!(kind(why), Kind::Other, "{why}");
        }
    }
}
