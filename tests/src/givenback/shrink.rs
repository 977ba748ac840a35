//! Runs sessions, and leaves out steps of one that fails while it fails in the
//! same way.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::features::Groups;
use super::play::{Kind, Play, Wrong};
use super::seed;
use super::step::Step;

/// The maximum number of runs for finding the shortest session.
const TRIES: usize = 80;

/// The steps of a session, numbered from 1.
pub type Steps = Vec<(usize, Step)>;

/// A session that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The index of the step that failed.
    pub at: usize,
    /// What was wrong.
    pub wrong: Wrong,
}

/// Returns the steps of a seed. `TOUCHMARK_ONLY=3,7,9` selects some of them.
pub fn steps(seed: u64, groups: Groups) -> Steps {
    let only = std::env::var("TOUCHMARK_ONLY").unwrap_or_default();
    let only: Vec<usize> = only.split(',').filter_map(|n| n.parse().ok()).collect();
    let mut steps = seed::steps(seed, groups);
    steps.retain(|(n, _)| only.is_empty() || only.contains(n));
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
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let wrong = Wrong {
            kind: Kind::Panic,
            what: text.unwrap_or_default(),
        };
        (Some(Failure { at, wrong }), 0)
    })
}

/// Leaves out steps of a session that fails. Returns the rest as a script to
/// read, with a command that runs it again.
pub fn shrunk(seed: u64, groups: Groups, steps: &[(usize, Step)], failure: Failure) -> String {
    let mut best = steps[..=failure.at].to_vec();
    let mut wrong = failure.wrong;
    let mut tries = TRIES;
    let mut size = best.len().next_power_of_two() / 2;
    while size > 0 && tries > 0 {
        let (mut at, mut progress) = (0, false);
        while at < best.len() && tries > 0 {
            tries -= 1;
            let mut fewer = best.clone();
            fewer.drain(at..(at + size).min(best.len()));
            match run(&fewer, groups).0 {
                Some(failure) if failure.wrong.kind == wrong.kind => {
                    fewer.truncate(failure.at + 1);
                    (best, wrong, progress) = (fewer, failure.wrong, true);
                }
                _ => at += size,
            }
        }
        if !(progress && size == 1) {
            size /= 2;
        }
    }
    script(seed, groups, &best, &wrong)
}

/// Returns a session as a script to read.
pub fn script(seed: u64, groups: Groups, steps: &[(usize, Step)], wrong: &Wrong) -> String {
    let only: Vec<String> = steps.iter().map(|(n, _)| n.to_string()).collect();
    let group = groups.name();
    let mut text = format!("{:?} in group {group}:\n", wrong.kind);
    for (number, step) in steps {
        let _ = writeln!(text, "{number:4}  {step}");
    }
    let _ = writeln!(text, "      {}", wrong.what);
    let _ = write!(
        text,
        "      again: TOUCHMARK_GROUP={group} TOUCHMARK_SEED={seed} TOUCHMARK_ONLY={} \
         cargo test --profile test -p touchmark-tests given_back:: -- --nocapture",
        only.join(",")
    );
    text
}
