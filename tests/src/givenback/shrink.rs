//! Runs sessions, and leaves out steps of one that fails while it fails in the
//! same way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::features::Groups;
use super::play::{Kind, Play, Wrong};
use super::seed;
use super::step::Step;
use crate::shrink;

/// The maximum number of runs for finding the shortest session.
const TRIES: usize = 80;

/// The steps of a session, numbered from 1.
pub type Steps = Vec<(usize, Step)>;

/// A session that failed.
pub type Failure = shrink::Failure<Wrong>;

/// Returns the steps of a seed, as far as they are selected.
pub fn steps(seed: u64, groups: Groups) -> Steps {
    let mut steps = seed::steps(seed, groups);
    shrink::select(&mut steps);
    steps
}

/// Runs a session. Returns what was wrong, if anything, and the number of undos
/// that were compared.
pub fn run(steps: &[(usize, Step)], groups: Groups) -> (Option<Failure>, u32) {
    let mut at = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut play = Play::new(steps, groups);
        for (n, (number, step)) in steps.iter().enumerate() {
            at = n;
            let done = play.step(*number, step);
            play.trace(*number, step);
            if let Err(wrong) = done {
                return (Some(Failure { at, wrong }), play.judged);
            }
        }
        let judged = play.judged;
        play.end();
        (None, judged)
    }));
    result.unwrap_or_else(|panic| {
        let wrong = Wrong {
            kind: Kind::Panic,
            what: shrink::message(&*panic),
        };
        (Some(Failure { at, wrong }), 0)
    })
}

/// Leaves out steps of a session that fails. Returns the rest as a script to
/// read, with a command that runs it again.
pub fn shrunk(seed: u64, groups: Groups, steps: &[(usize, Step)], failure: Failure) -> String {
    let is_same = |one: &Wrong, other: &Wrong| one.kind == other.kind;
    let again = |steps: &[(usize, Step)]| run(steps, groups).0;
    let (best, wrong) = shrink::shrunk(steps, failure, TRIES, is_same, again);
    script(seed, groups, &best, &wrong)
}

/// Returns a session as a script to read.
pub fn script(seed: u64, groups: Groups, steps: &[(usize, Step)], wrong: &Wrong) -> String {
    let group = groups.name();
    let (text, only) = shrink::script(steps);
    let Wrong { kind, what } = wrong;
    format!(
        "{kind:?} in group {group}:\n{text}      {what}\n      again: TOUCHMARK_GROUP={group} \
         TOUCHMARK_SEED={seed} {only} cargo test --profile test -p touchmark-tests given_back:: \
         -- --nocapture"
    )
}
