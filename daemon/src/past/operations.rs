//! What git did to the repository of a workspace, from its log of `HEAD`.

use std::path::Path;

use touchmark_proto::Places;

use crate::git::reflog::{self, Move};
use crate::git::{WorkTree, files};

/// The number of digits of a commit's id that are shown.
const DIGITS: usize = 7;

/// One operation of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// When it ended, in whole seconds since 1970.
    pub(super) second: u64,
    /// What it did, in one line: `pull, main 1a2b3c4..4d5e6f7`.
    pub(super) text: String,
}

/// Returns the operations that moved `HEAD` in the repository of a workspace,
/// the oldest first. Empty outside of a repository.
pub(super) fn operations(root: &Path, places: &Places) -> Vec<Operation> {
    let Some(tree) = WorkTree::of(root, places) else {
        return Vec::new();
    };
    let head = files::line(&tree.own.join("HEAD"));
    of_moves(
        &reflog::moves(&tree),
        head.as_deref().and_then(files::branch),
    )
}

/// An operation that is being put together from its moves, the newest first.
struct Group<'a> {
    second: u64,
    /// The operation's name, without the step: `rebase`.
    name: &'a str,
    /// Whether earlier moves may belong to it.
    is_open: bool,
    branch: Option<String>,
    before: Option<&'a str>,
    after: &'a str,
    /// What it checked out.
    checkout: Option<(&'a str, &'a str)>,
}

fn of_moves(moves: &[Move], now: Option<String>) -> Vec<Operation> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // The branch that was checked out after the move; `None` for none.
    let mut branch = now;
    for one in moves.iter().rev() {
        let (what, why) = one.why.split_once(": ").unwrap_or((&one.why, ""));
        let (name, step) = one.operation();
        let begins = step.is_none_or(|step| step == "start");
        if let Some(group) = groups.last_mut()
            && group.is_open
            && group.name == name
        {
            group.before = one.before.as_deref();
            group.is_open = !begins;
            if begins {
                branch.clone_from(&group.branch);
            }
            continue;
        }
        let checkout = why.strip_prefix("moving from ");
        let checkout = checkout.filter(|_| what == "checkout");
        let checkout = checkout.and_then(|names| names.split_once(" to "));
        groups.push(Group {
            second: one.second,
            name,
            is_open: !begins,
            branch: branch.clone(),
            before: one.before.as_deref(),
            after: &one.id,
            checkout,
        });
        if let Some((from, _)) = checkout {
            branch = Some(from.to_owned()).filter(|from| !is_id(from));
        }
    }
    // `git stash` makes a move from a commit to itself.
    groups.retain(|group| group.checkout.is_some() || group.before != Some(group.after));
    groups.iter().rev().map(Group::operation).collect()
}

fn is_id(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Group<'_> {
    fn operation(&self) -> Operation {
        let short = |id: &str| id.get(..DIGITS).unwrap_or(id).to_owned();
        let name = |name: &str| {
            if is_id(name) {
                short(name)
            } else {
                name.to_owned()
            }
        };
        let text = match (self.checkout, self.before) {
            (Some((from, to)), _) => format!("checkout, {} to {}", name(from), name(to)),
            (None, before) => {
                let branch = self.branch.as_deref().unwrap_or("HEAD");
                let range = match before {
                    Some(before) => format!("{}..{}", short(before), short(self.after)),
                    None => short(self.after),
                };
                format!("{}, {branch} {range}", self.name)
            }
        };
        Operation {
            second: self.second,
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(from: char, to: char, second: u64, why: &str) -> Move {
        let id = |digit: char| digit.to_string().repeat(40);
        Move {
            before: (from != '0').then(|| id(from)),
            id: id(to),
            second,
            why: why.to_owned(),
        }
    }

    #[test]
    fn git_operations_are_named_with_their_branch_and_commits() {
        let moves = [
            one('0', '1', 1, "commit (initial): one"),
            one('1', '2', 2, "commit: two"),
            one('2', '2', 3, "checkout: moving from main to topic"),
            one('2', '3', 4, "commit (amend): three: more"),
            one('3', '3', 5, "reset: moving to HEAD"),
            one('3', '2', 6, "rebase (start): checkout main"),
            one('2', '4', 6, "rebase (pick): three"),
            one(
                '4',
                '4',
                7,
                "rebase (finish): returning to refs/heads/topic",
            ),
            one('4', '2', 8, "checkout: moving from topic to main"),
            one('2', '5', 9, "pull: Fast-forward"),
        ];
        let found = of_moves(&moves, Some("main".to_owned()));
        let told: Vec<_> = found.iter().map(|one| (one.second, &*one.text)).collect();
        assert_eq!(
            told,
            [
                (1, "commit (initial), main 1111111"),
                (2, "commit, main 1111111..2222222"),
                (3, "checkout, main to topic"),
                (4, "commit (amend), topic 2222222..3333333"),
                (7, "rebase, topic 3333333..4444444"),
                (8, "checkout, topic to main"),
                (9, "pull, main 2222222..5555555"),
            ]
        );
    }

    #[test]
    fn a_detached_head_and_a_rebase_that_is_under_way() {
        let id = "a".repeat(40);
        let moves = [
            one('1', '2', 1, &format!("checkout: moving from main to {id}")),
            one('2', '3', 2, "commit: x"),
            one('3', '4', 3, "pull --rebase (start): checkout 4"),
            one('4', '5', 3, "pull --rebase (pick): x"),
        ];
        let found = of_moves(&moves, None);
        let told: Vec<_> = found.iter().map(|one| &*one.text).collect();
        assert_eq!(
            told,
            [
                "checkout, main to aaaaaaa",
                "commit, HEAD 2222222..3333333",
                "pull --rebase, HEAD 3333333..5555555",
            ]
        );
    }
}
