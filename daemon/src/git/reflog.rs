//! When commits were made in this work tree, from git's log of `HEAD`. Each
//! line of it is one move: the commit before, the commit after, who, when, and
//! why.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use touchmark_proto::{Millis, Places};

use crate::git::WorkTree;
use crate::system::open::patient;
use crate::system::stat::{MetadataExt as _, modified_ms};

/// The most bytes of the log that are read, the newest.
const MOST: u64 = 16 << 20;

/// The steps of one operation, as git names them between parentheses.
const STEPS: [&str; 10] = [
    "start", "pick", "continue", "finish", "squash", "fixup", "reword", "edit", "skip", "abort",
];

/// Those that make no commit.
const MAKES_NONE: [&str; 4] = ["start", "finish", "skip", "abort"];

/// A commit that was made in this work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The id of the commit.
    pub(crate) id: String,
    /// The id of the commit that `HEAD` named before; `None` for the first one.
    pub(crate) before: Option<String>,
    /// When it was made, in whole seconds since 1970.
    pub(crate) second: u64,
}

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
            _ => is_commit(self.why.as_bytes()),
        }
    }
}

/// A place in the log of `HEAD`: up to which line it was processed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The id of the commit after the last processed move; empty for none.
    id: String,
    /// The second of that move.
    second: u64,
}

/// What distinguishes one state of the log from another: its inode, its size,
/// and when it was modified.
pub(crate) type Stamp = (u64, u64, Millis);

/// Returns the path of the log of `HEAD`, whether or not it exists. `None`
/// outside of a repository.
pub(crate) fn path(root: &Path, places: &Places) -> Option<PathBuf> {
    WorkTree::of(root, places).map(|tree| log_of(&tree))
}

fn log_of(tree: &WorkTree) -> PathBuf {
    tree.own.join("logs/HEAD")
}

/// Returns the stamp of the log; `None` if there is no log.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((found.ino(), found.size(), modified_ms(&found)))
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
    let lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| parsed(line.strip_suffix(b"\n")?));
    lines
        .map(|(one, why)| Move {
            before: one.before,
            id: one.id,
            second: one.second,
            why: String::from_utf8_lossy(why).into_owned(),
        })
        .collect()
}

/// Reads the last bytes of a regular file that is not a link.
fn read(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Seek as _, SeekFrom};
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut file = patient()
        .custom_flags(flags.bits().cast_signed())
        .read(true)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(std::io::Error::other("no file"));
    }
    file.seek(SeekFrom::Start(found.len().saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the commits after a place, the oldest first, each with its place.
/// Other moves of `HEAD`, such as a checkout, are no commits.
pub(crate) fn after(path: &Path, place: &Place) -> Vec<(Commit, Place)> {
    let bytes = read(path, MOST).unwrap_or_default();
    let moves: Vec<(Commit, &[u8])> = bytes
        // The last line may be incomplete. The next look finds it.
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| parsed(line.strip_suffix(b"\n")?))
        .collect();
    let last = moves
        .iter()
        .rposition(|(one, _)| one.id == place.id && one.second == place.second);
    let rest = match last {
        Some(last) => &moves[last + 1..],
        // Git has dropped older lines.
        None => &moves[moves.partition_point(|(one, _)| one.second <= place.second)..],
    };
    let commits = rest.iter().filter(|(_, why)| is_commit(why));
    commits
        .map(|(commit, _)| {
            let place = Place {
                id: commit.id.clone(),
                second: commit.second,
            };
            (commit.clone(), place)
        })
        .collect()
}

/// Returns whether a move with this reason made a commit out of files of the
/// work tree. A rebase makes commits again that were judged when they were made
/// first.
fn is_commit(why: &[u8]) -> bool {
    let begins = |word: &[u8]| {
        let rest = why.strip_prefix(word);
        rest.is_some_and(|rest| matches!(rest.first(), Some(b':' | b' ')))
    };
    let merges = || why.windows(12).any(|part| part == b": Merge made");
    begins(b"commit") || begins(b"cherry-pick") || begins(b"revert") || begins(b"am") || merges()
}

/// Returns a line of the log: the move, and the reason.
fn parsed(line: &[u8]) -> Option<(Commit, &[u8])> {
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
    let second = head.rsplit(' ').nth(1)?.parse().ok()?;
    let commit = Commit {
        id: id.to_owned(),
        before: before
            .bytes()
            .any(|byte| byte != b'0')
            .then(|| before.to_owned()),
        second,
    };
    Some((commit, why))
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
    fn only_moves_that_made_a_commit_count_and_each_once() {
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
        let seconds = |place: &Place| -> Vec<u64> {
            let found = after(&file, place);
            found.iter().map(|(commit, _)| commit.second).collect()
        };
        let all = after(&file, &Place::default());
        assert_eq!(seconds(&Place::default()), [10, 20, 30, 40]);
        assert_eq!(all[0].0.before, None);
        assert_eq!(all[1].0.before, Some("1".repeat(40)));
        assert_eq!(seconds(&all[1].1), [30, 40]);
        assert_eq!(seconds(&all[3].1), [0_u64; 0]);
        // Git has dropped the older lines.
        std::fs::write(&file, whole[5..].concat()).unwrap();
        assert_eq!(seconds(&all[1].1), [40]);
        assert_eq!(seconds(&all[3].1), [0_u64; 0]);
    }
}
