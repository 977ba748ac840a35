//! Runs the steps of a seed, and finds the shortest list of them that still
//! fails.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::play::{Play, Wrong};
use super::rows::Row;
use super::seed;
use super::step::Step;

/// The number of steps in a run.
const STEPS: usize = 60;

/// The maximum number of runs for finding the shortest list.
const TRIES: usize = 150;

/// A run that failed.
pub struct Failure {
    /// The index of the step that failed.
    pub at: usize,
    /// The wrong answer.
    pub wrong: Wrong,
}

/// The result of a run.
#[derive(Default)]
pub struct Run {
    /// How often a copy's state was left open, and the number of comparisons.
    pub left_open: (u64, u64),
    /// The failure; `None` for a run that passed.
    pub failure: Option<Failure>,
}

/// Returns the numbered steps of a seed. `TOUCHMARK_ONLY=3,7,9` selects some of
/// them.
pub fn steps(seed: u64) -> Vec<(usize, Step)> {
    let all = seed::steps(seed, STEPS).into_iter().enumerate();
    let only = std::env::var("TOUCHMARK_ONLY").unwrap_or_default();
    let only: Vec<usize> = only.split(',').filter_map(|n| n.parse().ok()).collect();
    all.filter(|(n, _)| only.is_empty() || only.contains(n))
        .collect()
}

/// Runs the steps.
pub fn run(steps: &[(usize, Step)], may_mount: bool, loud: bool) -> Run {
    let mut at = 0;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut play = Play::new(may_mount);
        let mut failure = None;
        for (n, (number, step)) in steps.iter().enumerate() {
            at = n;
            if loud {
                println!("{number:4}  {step}");
            }
            if let Err(wrong) = play.step(step) {
                failure = Some(Failure { at, wrong });
                break;
            }
        }
        let left_open = play.left_open;
        play.end();
        Run { left_open, failure }
    }));
    result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let what = format!("a panic: {}", text.unwrap_or_default());
        let wrong = Wrong {
            row: Row::Plain,
            what,
        };
        Run {
            failure: Some(Failure { at, wrong }),
            ..Run::default()
        }
    })
}

/// Leaves steps out as long as the same comparison fails. Returns the remaining
/// ones as a text to read and to run again.
pub fn shrunk(seed: u64, steps: &[(usize, Step)], failure: Failure, may_mount: bool) -> String {
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
            match run(&fewer, may_mount, false).failure {
                Some(failure) if failure.wrong.row == wrong.row => {
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
    let only: Vec<String> = best.iter().map(|(n, _)| n.to_string()).collect();
    let mut text = format!(
        "{:?}: TOUCHMARK_SEED={seed} TOUCHMARK_ONLY={}\n",
        wrong.row,
        only.join(",")
    );
    for (number, step) in &best {
        let _ = writeln!(text, "{number:4}  {step}");
    }
    let _ = writeln!(text, "      {}", wrong.what);
    text
}
