//! Cuts a failing run down to the steps that it takes to fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::op::Script;
use crate::play;

pub type Outcome = Result<u64, (usize, String)>;

/// A panic of the engine is a failure like any other.
pub fn caught(script: &Script) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| play::run(script))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        Err((usize::MAX, format!("panic: {text}")))
    })
}

/// What a failure is about, so that the shrunk run fails by the same rule.
pub fn kind(why: &str) -> &str {
    why.split(':').next().unwrap_or_default()
}

pub fn shrink(script: &Script) -> (Script, String) {
    let mut best = script.clone();
    let mut why = match caught(&best) {
        Err((step, why)) => {
            best.ops.truncate(step.saturating_add(1));
            why
        }
        Ok(_) => return (best, "it does not fail again".into()),
    };
    let wanted = kind(&why).to_owned();
    let mut size = best.ops.len().next_power_of_two() / 2;
    let mut budget = 1_500;
    while size > 0 && budget > 0 {
        let mut at = 0;
        let mut progress = false;
        while at < best.ops.len() && budget > 0 {
            budget -= 1;
            let mut candidate = best.clone();
            let end = (at + size).min(candidate.ops.len());
            candidate.ops.drain(at..end);
            match caught(&candidate) {
                Err((step, text)) if kind(&text) == wanted => {
                    candidate.ops.truncate(step.saturating_add(1));
                    best = candidate;
                    why = text;
                    progress = true;
                }
                _ => at += size,
            }
        }
        if !(progress && size == 1) {
            size /= 2;
        }
    }
    let mut at = 0;
    while at < best.initial.len() {
        let mut candidate = best.clone();
        candidate.initial.remove(at);
        match caught(&candidate) {
            Err((_, text)) if kind(&text) == wanted => {
                best = candidate;
                why = text;
            }
            _ => at += 1,
        }
    }
    (best, why)
}
