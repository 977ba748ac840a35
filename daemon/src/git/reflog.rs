//! When commits were made in this work tree, from git's log of `HEAD`. Each
//! line of it is one move: the commit before, the commit after, who, when, and
//! why.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::git::{LATEST, WorkTree};
use crate::system::open::regular;

/// The most bytes of the log that are read, the newest.
const MOST: u64 = 4 << 20;

/// The steps of one operation, as git names them between parentheses.
const STEPS: [&str; 10] = [
    "start", "pick", "continue", "finish", "squash", "fixup", "reword", "edit", "skip", "abort",
];

/// Those that make no commit.
const MAKES_NONE: [&str; 4] = ["start", "finish", "skip", "abort"];

/// One move of `HEAD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// The id of the commit that `HEAD` named before; `None` for no commit.
    pub(crate) before: Option<String>,
    /// The id of the commit that it names since.
    pub(crate) id: String,
    /// When it was made, in whole seconds since 1970.
    pub(crate) second: u64,
    /// Why, in git's words: `checkout: moving from main to topic`.
    pub(crate) why: String,
}

impl Move {
    /// Returns the name of the operation, and the step of it if it has several:
    /// `pull --rebase` and `pick`.
    pub(crate) fn operation(&self) -> (&str, Option<&str>) {
        let (what, _) = self.why.split_once(": ").unwrap_or((&self.why, ""));
        let step = what.rsplit_once(" (");
        let step = step.and_then(|(name, step)| Some((name, step.strip_suffix(')')?)));
        match step.filter(|(_, step)| STEPS.contains(step)) {
            Some((name, step)) => (name, Some(step)),
            None => (what, None),
        }
    }

    /// Returns the commit that the move's commit amends, if it amends one.
    pub(crate) fn amends(&self) -> Option<&String> {
        let before = self.before.as_ref();
        before.filter(|_| self.why.starts_with("commit (amend)"))
    }

    /// Returns whether the move made the commit that it names since. Others go to
    /// a commit that there was before.
    pub(crate) fn makes_commit(&self) -> bool {
        match self.operation() {
            (_, Some(step)) if !MAKES_NONE.contains(&step) => true,
            _ => self.is_commit(),
        }
    }

    /// Returns whether the move made a commit out of files of the work tree. A
    /// rebase makes commits again that were made before.
    pub(crate) fn is_commit(&self) -> bool {
        let begins = |word: &str| {
            let rest = self.why.strip_prefix(word);
            rest.is_some_and(|rest| rest.starts_with([':', ' ']))
        };
        let merges = self.why.contains(": Merge made");
        merges
            || ["commit", "cherry-pick", "revert", "am"]
                .into_iter()
                .any(begins)
    }
}

fn log_of(tree: &WorkTree) -> PathBuf {
    tree.own.join("logs/HEAD")
}

/// Returns all moves of `HEAD` in a work tree, the oldest first. There are none
/// if git keeps no log (`core.logAllRefUpdates`).
pub(crate) fn moves(tree: &WorkTree) -> Vec<Move> {
    moves_in(&log_of(tree), MOST)
}

/// Returns the moves in the last `most` bytes of a log, the oldest first.
pub(crate) fn moves_in(log: &Path, most: u64) -> Vec<Move> {
    let bytes = read(log, most).unwrap_or_default();
    // The last line may be incomplete.
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| parsed(line.strip_suffix(b"\n")?))
        .collect()
}

/// Reads the last bytes of a regular file that is not a link.
fn read(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Seek as _, SeekFrom};
    let (mut file, found) = regular(path)?;
    file.seek(SeekFrom::Start(found.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the move of a line of the log.
fn parsed(line: &[u8]) -> Option<Move> {
    let tab = line.iter().position(|byte| *byte == b'\t');
    let (head, why) = match tab {
        Some(tab) => (&line[..tab], &line[tab + 1..]),
        None => (line, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut words = head.split(' ');
    let (before, id) = (words.next()?, words.next()?);
    let is_id = |word: &str| {
        matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !is_id(before) || !is_id(id) {
        return None;
    }
    let second: u64 = head.rsplit(' ').nth(1)?.parse().ok()?;
    Some(Move {
        id: id.to_owned(),
        before: before
            .bytes()
            .any(|byte| byte != b'0')
            .then(|| before.to_owned()),
        second: second.min(LATEST),
        why: String::from_utf8_lossy(why).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(from: char, to: char, second: u64, why: &str) -> String {
        let id = |digit: char| digit.to_string().repeat(40);
        format!("{} {} A B <a@b> {second} +0100\t{why}\n", id(from), id(to))
    }

    #[test]
    fn a_move_makes_a_commit_or_goes_to_one() {
        let makes = |why: &str| {
            let one = Move {
                before: None,
                id: String::new(),
                second: 0,
                why: why.to_owned(),
            };
            one.makes_commit()
        };
        for why in [
            "commit: x (start): y",
            "commit (amend): x",
            "rebase (pick): x",
            "pull --rebase -q (squash): x",
            "pull: Merge made by the 'ort' strategy.",
        ] {
            assert!(makes(why), "{why}");
        }
        for why in [
            "pull: Fast-forward",
            "checkout: moving from a (pick) to b",
            "rebase (start): checkout main",
            "pull --rebase (finish): returning to refs/heads/main",
            "reset: moving to HEAD~1",
        ] {
            assert!(!makes(why), "{why}");
        }
    }

    #[test]
    fn a_time_that_no_clock_shows_is_the_latest_one() {
        let move_of = |second| parsed(line('1', '2', second, "commit: x").trim_end().as_bytes());
        assert_eq!(move_of(u64::MAX).unwrap().second, LATEST);
        assert_eq!(move_of(5).unwrap().second, 5);
    }

    #[test]
    fn only_moves_that_made_a_commit_count() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("HEAD");
        let whole = [
            line('0', '1', 10, "commit (initial): one"),
            line('1', '2', 20, "commit: two"),
            line('2', '1', 25, "checkout: moving from a to b"),
            line('1', '3', 30, "merge b: Merge made by the 'ort' strategy."),
            line('3', '4', 30, "pull: Fast-forward"),
            line('4', '5', 40, "commit (amend): two"),
            line('5', '6', 50, "rebase (pick): two"),
            line('6', '7', 60, "committed: by another tool"),
        ];
        std::fs::write(&file, whole.concat() + "88").unwrap();
        let moves = moves_in(&file, MOST);
        let commits: Vec<&Move> = moves.iter().filter(|one| one.is_commit()).collect();
        let seconds: Vec<u64> = commits.iter().map(|one| one.second).collect();
        assert_eq!(seconds, [10, 20, 30, 40]);
        assert_eq!(commits[0].before, None);
        assert_eq!(commits[1].before, Some("1".repeat(40)));
    }
}
