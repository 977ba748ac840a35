//! Runs of steps made from seeds: explores many, and shrinks those that fail.
//!
//! `TOUCHMARK_STEPS` sets the number of steps. `TOUCHMARK_SEED` runs only one
//! seed and prints the inputs and effects of the shrunk run. `TOUCHMARK_FROM`
//! sets the first seed. `TOUCHMARK_FAILURES` sets the number of failures to
//! print before stopping. `TOUCHMARK_SOAK` uses the larger number of steps of a
//! long test.
#![allow(dead_code)] // no test uses all of it

pub mod rng;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// Whether to print the engine's inputs and effects.
pub static TRACE: AtomicBool = AtomicBool::new(false);

/// The number of steps made; or the step that failed, and why.
pub type Outcome = Result<u64, (usize, String)>;

/// The initial state and the steps of a run.
pub trait Script: Clone + Serialize {
    type Op: Clone + Serialize;

    fn ops(&mut self) -> &mut Vec<Self::Op>;

    /// Removes one of the initial files. Returns `false` if there is no file
    /// with this number.
    fn leave_out(&mut self, file: usize) -> bool;
}

/// A run whose end is known.
pub struct Known<S> {
    pub name: &'static str,
    pub script: S,
    /// What its end has to be.
    pub result: Vec<&'static str>,
}

/// Returns the runs of a file in `tests/known`. The line of a run's name
/// begins with `=`, and its comments with `#`. The setting and the steps are as
/// they are printed with a failure. The lines of the result begin with `->`.
pub fn known<S: Deserialize<'static>>(text: &'static str) -> Vec<Known<S>> {
    let runs = text.split("\n= ").skip(1).map(|run| {
        let mut lines = run.lines().filter(|line| !line.is_empty());
        let name = lines.next().unwrap();
        let result = lines.clone().filter_map(|line| line.strip_prefix("-> "));
        let mut steps = lines.clone().filter(|line| !line.starts_with(['#', '-']));
        let setting = steps.next().unwrap();
        let steps = steps.collect::<Vec<_>>().join(",");
        let script = setting.replace(r#""ops":[]"#, &format!(r#""ops":[{steps}]"#));
        let script = serde_json::from_str(script.leak());
        Known {
            name,
            script: script.unwrap_or_else(|error| panic!("{name}: {error}")),
            result: result.collect(),
        }
    });
    runs.collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs scripts with about this number of steps in total, or the number for a
/// long test.
pub fn explore<S: Script>(
    (steps, soak): (u64, u64),
    make: impl Fn(u64) -> S,
    run: impl Fn(&S) -> Outcome,
) {
    let steps = number("TOUCHMARK_STEPS").unwrap_or(match std::env::var("TOUCHMARK_SOAK") {
        Ok(soaks) if !soaks.is_empty() => soak,
        _ => steps,
    });
    let only = number("TOUCHMARK_SEED");
    let wanted = number("TOUCHMARK_FAILURES").unwrap_or(1);
    let mut seed = only.or(number("TOUCHMARK_FROM")).unwrap_or(1);
    let mut done = 0;
    let mut failures: Vec<String> = Vec::new();
    // The panic hook is the same for all threads.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let loud = std::panic::take_hook();
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Only runs on this thread are expected to fail.
        if std::thread::current().id() != here {
            eprintln!("{info}");
        }
    }));
    while done < steps {
        let script = make(seed);
        match caught(|| run(&script)) {
            Ok(count) => done += count,
            Err(_) => {
                done += 200;
                let (mut small, why) = shrink(&script, &run);
                if only.is_some() {
                    TRACE.store(true, Ordering::Relaxed);
                    let _ = caught(|| run(&small));
                }
                let ops = std::mem::take(small.ops());
                let steps = ops.iter().map(|op| format!("{}\n", json(op)));
                let steps: String = steps.collect();
                let text = format!("seed {seed}: {why}\n{}\n{steps}", json(&small));
                if wanted > 1 {
                    eprintln!("{text}\n");
                }
                failures.push(text);
            }
        }
        if only.is_some() || failures.len() as u64 >= wanted {
            break;
        }
        seed += 1;
    }
    std::panic::set_hook(loud);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs a script. A panic of the engine counts as a failure.
pub fn caught(run: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        Err((usize::MAX, format!("panic: {text}")))
    })
}

/// Returns the rule that a failure is about, so that the shrunk run fails by
/// the same rule.
fn kind(why: &str) -> &str {
    why.split(':').next().unwrap_or_default()
}

/// Shrinks a failing run to the steps that are needed to fail.
fn shrink<S: Script>(script: &S, run: &impl Fn(&S) -> Outcome) -> (S, String) {
    let mut best = script.clone();
    let mut why = match caught(|| run(&best)) {
        Err((step, why)) => {
            best.ops().truncate(step.saturating_add(1));
            why
        }
        Ok(_) => return (best, "it does not fail again".into()),
    };
    let wanted = kind(&why).to_owned();
    let mut size = best.ops().len().next_power_of_two() / 2;
    let mut budget = 1_500;
    while size > 0 && budget > 0 {
        let mut at = 0;
        let mut progress = false;
        while at < best.ops().len() && budget > 0 {
            budget -= 1;
            let mut candidate = best.clone();
            let end = (at + size).min(candidate.ops().len());
            candidate.ops().drain(at..end);
            match caught(|| run(&candidate)) {
                Err((step, text)) if kind(&text) == wanted => {
                    candidate.ops().truncate(step.saturating_add(1));
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
    loop {
        let mut candidate = best.clone();
        if !candidate.leave_out(at) {
            return (best, why);
        }
        match caught(|| run(&candidate)) {
            Err((_, text)) if kind(&text) == wanted => {
                best = candidate;
                why = text;
            }
            _ => at += 1,
        }
    }
}
