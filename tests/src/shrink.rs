//! Runs of numbered steps: finds the shortest list of steps that still fails.

use std::any::Any;
use std::fmt::{Debug, Write as _};

/// A run that failed. `W` says what was wrong.
#[derive(Clone, Debug)]
pub struct Failure<W> {
    /// The index of the step that failed.
    pub at: usize,
    /// What was wrong.
    pub wrong: W,
}

/// Removes all steps that `TOUCHMARK_ONLY=3,7,9` does not select.
pub fn select<S>(steps: &mut Vec<(usize, S)>) {
    let only = std::env::var("TOUCHMARK_ONLY").unwrap_or_default();
    let only: Vec<usize> = only.split(',').filter_map(|n| n.parse().ok()).collect();
    steps.retain(|(n, _)| only.is_empty() || only.contains(n));
}

/// Leaves out steps as long as the run fails in the same way, with at most
/// `tries` runs. Returns the remaining steps and what is wrong with them.
pub fn shrunk<S: Clone, W>(
    steps: &[(usize, S)],
    failure: Failure<W>,
    mut tries: usize,
    is_same: impl Fn(&W, &W) -> bool,
    run: impl Fn(&[(usize, S)]) -> Option<Failure<W>>,
) -> (Vec<(usize, S)>, W) {
    let mut best = steps[..=failure.at].to_vec();
    let mut wrong = failure.wrong;
    let mut size = best.len().next_power_of_two() / 2;
    while size > 0 && tries > 0 {
        let (mut at, mut progress) = (0, false);
        while at < best.len() && tries > 0 {
            tries -= 1;
            let mut fewer = best.clone();
            fewer.drain(at..(at + size).min(best.len()));
            match run(&fewer) {
                Some(failure) if is_same(&failure.wrong, &wrong) => {
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
    (best, wrong)
}

/// Returns the steps as lines to read, and the variable that selects them.
pub fn script<S: Debug>(steps: &[(usize, S)]) -> (String, String) {
    let mut text = String::new();
    for (number, step) in steps {
        let _ = writeln!(text, "{number:4}  {step:?}");
    }
    let only: Vec<String> = steps.iter().map(|(n, _)| n.to_string()).collect();
    (text, format!("TOUCHMARK_ONLY={}", only.join(",")))
}

/// Returns a panic's message.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_default()
}
