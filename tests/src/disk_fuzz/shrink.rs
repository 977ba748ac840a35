//! Runs the steps of a seed, and finds the shortest list of them that still
//! fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::play::{Play, Wrong};
use super::rows::Row;
use super::seed;
use super::step::Step;
pub use crate::shrink::Failure;
use crate::shrink::{self, message, select};

/// The number of steps in a run.
const STEPS: usize = 60;

/// The maximum number of runs for finding the shortest list.
const TRIES: usize = 150;

/// The result of a run.
#[derive(Default)]
pub struct Run {
    /// How often a copy's state was left open, and the number of comparisons.
    pub left_open: (u64, u64),
    /// The failure; `None` for a run that passed.
    pub failure: Option<Failure<Wrong>>,
}

/// Returns the numbered steps of a seed, as far as they are selected.
pub fn steps(seed: u64) -> Vec<(usize, Step)> {
    let mut steps = seed::steps(seed, STEPS).into_iter().enumerate().collect();
    select(&mut steps);
    steps
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
                println!("{number:4}  {step:?}");
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
        let what = format!("a panic: {}", message(&*panic));
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

/// Returns the shortest list of steps that fails in the same way, as a text to
/// read and to run again.
pub fn shrunk(
    seed: u64,
    steps: &[(usize, Step)],
    failure: Failure<Wrong>,
    may_mount: bool,
) -> String {
    let is_same = |one: &Wrong, other: &Wrong| one.row == other.row;
    let again = |steps: &[(usize, Step)]| run(steps, may_mount, false).failure;
    let (best, wrong) = shrink::shrunk(steps, failure, TRIES, is_same, again);
    let (text, only) = shrink::script(&best);
    let Wrong { row, what } = wrong;
    format!("{row:?}: TOUCHMARK_SEED={seed} {only}\n{text}      {what}\n")
}
