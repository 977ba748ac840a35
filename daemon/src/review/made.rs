//! Which commits agents have made, and which commits make earlier ones again
//! (REV-2).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::times::Times;
use crate::git::reflog::Move;
use crate::git::{Commit, Objects};

/// The maximum number of commits that are searched for those of agents.
pub(super) const MOST_COMMITS: usize = 1_000;

/// The maximum number of moves of `HEAD` that are searched for commits that were
/// made again.
pub(super) const MOST_MOVES: usize = 300;

/// How many commits are read together.
const TOGETHER: usize = 64;

/// A commit that was made in this work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) id: String,
    /// The commit that it was made from: the first parent, or the commit that it
    /// amends. `None` for a first commit.
    pub(super) base: Option<String>,
    /// The commits that it merges.
    pub(super) merged: Vec<String>,
    pub(super) is_agents: bool,
    /// It makes an earlier commit again, so what both add is the earlier one's.
    pub(super) is_again: bool,
}

/// Returns the last commit and its first parents, the newest first, up to one
/// that is not meant. `known` has commits by their ids.
fn walked(
    git: &mut Objects,
    known: &mut HashMap<String, Commit>,
    head: Commit,
    is_meant: impl Fn(&Commit) -> bool,
) -> Vec<Commit> {
    let mut walked = Vec::new();
    let mut next = Some(head);
    while let Some(commit) = next.filter(&is_meant) {
        let parent = commit.parent.clone();
        walked.push(commit);
        let parent = parent.filter(|_| walked.len() < MOST_COMMITS);
        next = parent.and_then(|parent| {
            if !known.contains_key(&parent) {
                let names: Vec<Vec<u8>> = (0..TOGETHER)
                    .map(|n| format!("{parent}~{n}").into_bytes())
                    .collect();
                let read = git.commits(&names).into_iter();
                known.extend(read.map(|commit| (commit.id.clone(), commit)));
            }
            known.get(&parent).cloned()
        });
    }
    walked
}

/// Returns the commits of agents, and the user's commits that agents have made
/// again, the oldest first. `known` has commits by their ids.
pub(super) fn made(
    git: &mut Objects,
    known: &mut HashMap<String, Commit>,
    head: Commit,
    moves: &[Move],
    times: &Times,
) -> Vec<Made> {
    let Some(oldest) = times.oldest() else {
        return Vec::new();
    };
    let mut walked = walked(git, known, head, |commit| times.made(commit).1 >= oldest);
    walked.reverse();
    let is_any = walked.iter().any(|commit| times.is_agents(commit))
        || moves.iter().any(|one| times.is_moved_by_agent(one));
    if !is_any {
        return Vec::new();
    }
    let unread = moves.iter().filter(|one| !known.contains_key(&one.id));
    let unread: Vec<Vec<u8>> = unread.map(|one| one.id.clone().into_bytes()).collect();
    for commit in git.commits(&unread).into_iter().chain(walked.clone()) {
        known.insert(commit.id.clone(), commit);
    }
    let mut met: HashSet<&String> = HashSet::new();
    let mut all: Vec<(Commit, Option<&Move>)> = Vec::new();
    for one in moves {
        if met.insert(&one.id)
            && let Some(commit) = known.get(&one.id)
        {
            all.push((commit.clone(), Some(one)));
        }
    }
    let rest = walked
        .into_iter()
        .filter(|commit| !met.contains(&commit.id));
    all.extend(rest.map(|commit| (commit, None)));
    if known.len() > 2 * (MOST_COMMITS + MOST_MOVES) {
        known.retain(|id, _| all.iter().any(|(commit, _)| commit.id == *id));
    }
    // Of the same time, those in the log are in its order.
    all.sort_by_key(|(commit, _)| times.made(commit).0);
    let again = made_again(&all, known);
    let is_agents = |at: usize| times.is_agents(&all[at].0);
    let mut needed: BTreeSet<usize> = (0..all.len()).filter(|at| is_agents(*at)).collect();
    for at in needed.clone() {
        let mut of = again[at];
        while let Some(one) = of.filter(|one| needed.insert(*one)) {
            of = again[one];
        }
    }
    let commits = needed.into_iter().map(|at| {
        let (commit, one) = &all[at];
        let amended = one.and_then(Move::amends);
        Made {
            id: commit.id.clone(),
            base: amended.or(commit.parent.as_ref()).cloned(),
            merged: commit.merged.clone(),
            is_agents: is_agents(at),
            is_again: again[at].is_some(),
        }
    });
    commits.collect()
}

/// Returns the index of each commit's last version before it, if it makes an
/// earlier commit again: what it amends, or the last one with the same author
/// and author's time. `all` has the commits in their order, with what git's log
/// of `HEAD` says about them. `known` has commits by their ids.
fn made_again(
    all: &[(Commit, Option<&Move>)],
    known: &HashMap<String, Commit>,
) -> Vec<Option<usize>> {
    let places = all.iter().enumerate();
    let places: HashMap<&String, usize> = places.map(|(at, (one, _))| (&one.id, at)).collect();
    let mut earlier: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut again: Vec<Option<usize>> = Vec::with_capacity(all.len());
    for (at, (commit, one)) in all.iter().enumerate() {
        let amended = one.and_then(Move::amends).and_then(|id| places.get(id));
        let amended = amended.filter(|before| **before < at);
        // The author's time is in whole seconds. Another commit of that second
        // is not made again by one that follows it, or its later version.
        let mut others: HashSet<usize> = HashSet::new();
        let mut next = commit.parent.as_ref().and_then(|id| known.get(id));
        while let Some(parent) = next.filter(|parent| parent.author == commit.author) {
            let mut version = places.get(&parent.id).copied();
            while let Some(place) = version.filter(|place| *place < at && others.insert(*place)) {
                version = again[place];
            }
            next = parent.parent.as_ref().and_then(|id| known.get(id));
        }
        // Nor by one that has been committed with another message.
        let typed = one.and_then(|one| one.why.strip_prefix("commit: "));
        let is_same = |other: usize| {
            let why = all[other].1.map_or("", |one| &one.why);
            let subject = why.split_once(": ").map_or("", |(_, subject)| subject);
            !others.contains(&other) && typed.is_none_or(|typed| typed == subject)
        };
        let same = earlier.entry(&commit.author).or_default();
        let last = same.iter().rev().find(|other| is_same(**other));
        again.push(amended.or(last).copied());
        same.push(at);
    }
    again
}
