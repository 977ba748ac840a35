//! What the moves of `HEAD` did to the files.
//!
//! Git's log of them may have been part of a copy of the repository, so it is
//! untrusted input. It only says where to look: contents decide.

use std::collections::HashMap;
use std::time::Duration;

use super::blobs::{Nanos, SECOND};
use crate::git::WorkTree;
use crate::git::index::ObjectId;
use crate::git::reflog::Move;

/// How long git may take to compare two commits.
const TIME: Duration = Duration::from_secs(20);

/// The most bytes that it may print about it: some 200,000 files.
const PRINTED: u64 = 200_000 * 256;

/// How long git may take from the time that it logs for a move to the end.
const TAKES: Nanos = 10 * SECOND;

/// A move of `HEAD`, and when it was made. The time in git's log is that at
/// which its command began, or any other (`GIT_COMMITTER_DATE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) of: Move,
    /// When it was logged at the latest. Git has written the files before.
    pub(super) logged: Nanos,
    /// When the commit was stored that it made; `None` if it made none, or if
    /// that is not known.
    pub(super) stored: Option<Nanos>,
}

impl Timed {
    /// Returns when the move probably began and ended.
    pub(super) fn made(&self) -> (Nanos, Nanos) {
        let begun = Nanos::from(self.of.second) * SECOND;
        (begun, self.logged.min(begun + TAKES))
    }
}

/// Returns the moves in a log that was changed last at `changed`. `known` are
/// those that it had before. `stored` returns when the commit was stored that a
/// move made; `None` if it made none, or if that is not known.
pub(super) fn timed(
    known: &[Timed],
    found: Vec<Move>,
    changed: Nanos,
    stored: impl Fn(&Move) -> Option<Nanos>,
) -> Vec<Timed> {
    let is_known = |count: &usize| {
        let same = known.iter().rev().zip(found[..*count].iter().rev());
        *count <= known.len() && same.into_iter().all(|(known, found)| known.of == *found)
    };
    let old = (0..=found.len()).rev().find(is_known).unwrap_or(0);
    let mut all = known[known.len() - old..].to_vec();
    // The new ones were logged after the last known one, and before the next
    // one made its commit.
    let first = all.last().map_or(Nanos::MIN, |last| last.logged);
    let (at, mut until) = (all.len(), changed);
    let last = found.len().saturating_sub(1);
    for (place, of) in found.into_iter().enumerate().skip(old).rev() {
        let stored = stored(&of);
        let mut one = Timed {
            of,
            logged: until,
            stored,
        };
        // The last one was logged when the log was changed.
        if place != last {
            one.logged = one.made().1.max(first);
        }
        until = stored.map_or(until, |stored| until.min(stored));
        all.insert(at, one);
    }
    all
}

/// Returns the last move that went to another commit.
pub(super) fn last(moves: &[Timed]) -> Option<&Move> {
    let mut moves = moves.iter().rev().map(|one| &one.of);
    moves.find(|one| one.before.as_ref() != Some(&one.id))
}

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
    /// The commit that ends a merge, rebase or cherry-pick that waited for the
    /// user. What git brought is in it, and what the user did meanwhile.
    Ends,
    /// A commit, a reset, a revert, and what is not known.
    Other,
}

impl Kind {
    pub(super) fn of(one: &Move) -> Self {
        let mut words = one.why.split([' ', ':']);
        match words.next().unwrap_or_default() {
            "checkout" => Self::Switch,
            "pull" | "merge" | "rebase" | "cherry-pick" => Self::Carries,
            "commit" => match words.next() {
                Some("(merge)" | "(rebase)" | "(cherry-pick)") => Self::Ends,
                _ => Self::Other,
            },
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

    fn moved(second: u64, why: &str) -> Move {
        Move {
            before: None,
            id: String::new(),
            second,
            why: why.to_owned(),
        }
    }

    #[test]
    fn the_log_tells_what_kind_a_move_is() {
        for (why, kind) in [
            ("checkout: moving from main to up", Kind::Switch),
            ("pull --rebase: Fast-forward", Kind::Carries),
            ("merge up: Merge made by the 'ort' strategy.", Kind::Carries),
            ("rebase (continue): two", Kind::Carries),
            ("commit (merge): Merge branch 'up'", Kind::Ends),
            ("commit (cherry-pick): two", Kind::Ends),
            ("commit (amend): two", Kind::Other),
            ("commit: (merge)", Kind::Other),
            ("reset: moving to HEAD", Kind::Other),
        ] {
            assert_eq!(Kind::of(&moved(0, why)), kind, "{why}");
        }
    }

    #[test]
    fn a_move_is_logged_when_the_log_is_changed() {
        let log = |seconds: &[u64]| seconds.iter().map(|second| moved(*second, "x")).collect();
        let seconds = |all: &[Timed]| -> Vec<Nanos> {
            let all = all.iter();
            all.map(|one| one.logged / SECOND).collect()
        };
        let timed = |known: &[Timed], log, changed| timed(known, log, changed, |_| None);
        let first = timed(&[], log(&[10, 100]), 150 * SECOND);
        assert_eq!(seconds(&first), [20, 150]);
        // The second of a move is a guess, within the times when the log was
        // changed.
        let next = timed(&first, log(&[10, 100, 0, 180, 199, 7]), 200 * SECOND);
        assert_eq!(seconds(&next), [20, 150, 150, 190, 200, 200]);
        // Git has dropped the older lines.
        let short = timed(&next, log(&[199, 7]), 300 * SECOND);
        assert_eq!(seconds(&short), [200, 200]);
        let other = timed(&next, log(&[5, 6]), 300 * SECOND);
        assert_eq!(seconds(&other), [15, 300]);
        // The next move made its commit before that.
        let stored = |of: &Move| (of.second == 180).then_some(185 * SECOND);
        let next = super::timed(&[], log(&[178, 179, 180, 186]), 200 * SECOND, stored);
        assert_eq!(seconds(&next), [185, 185, 190, 200]);
    }

    #[test]
    fn a_move_has_a_kind() {
        let kind = |why: &str| Kind::of(&moved(17, why));
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
