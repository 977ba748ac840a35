//! UNDO, HIST, REV: in generated sessions of several authors, an undo takes
//! back what the chosen author did, all of it and nothing else; blame and the
//! review name the author of every line; a redo gives back the bytes. See
//! `tests/src/givenback`.
//!
//! `TOUCHMARK_GROUP=Carried` runs the sessions of one group, also if it is off
//! (`All`: of all groups that are on), `TOUCHMARK_SEED=N` only that one,
//! `TOUCHMARK_ONLY=3,7,9` only these of its steps, `TOUCHMARK_SEEDS=N` so many,
//! beginning with `TOUCHMARK_FROM`. `TOUCHMARK_IGNORE=Blame` passes over
//! differences of that kind. `TOUCHMARK_TRACE=1` prints what the daemon has
//! decided in each step. `TOUCHMARK_REPORT=1` runs every group and
//! prints how many of its sessions fail, with one example of each kind.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use touchmark_tests::givenback::features::{FEATURES, Feature, Groups};
use touchmark_tests::givenback::play::Kind;
use touchmark_tests::givenback::shrink::{self, Failure};
use touchmark_tests::parts;

/// The number of sessions of a quick run.
const QUICK: u64 = 120;

/// The number of those of each group that runs alone.
const QUICK_ALONE: u64 = 40;

/// The number of sessions of a long run.
const ALL: u64 = 2_000;

/// The number of sessions at a time.
const LANES: usize = 2;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The sessions of a group that failed, by seed, and the number of undos.
struct Played {
    failures: BTreeMap<u64, Failure>,
    undos: u64,
}

/// Runs sessions, some at a time.
fn played(groups: Groups, from: u64, count: u64) -> Played {
    let (next, undos) = (AtomicU64::new(from), AtomicU64::new(0));
    let failures = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        return;
                    }
                    let (failure, judged) = shrink::run(&shrink::steps(seed, groups), groups);
                    undos.fetch_add(u64::from(judged), Ordering::Relaxed);
                    if let Some(failure) = failure {
                        let what = failure.wrong.what.lines().next().unwrap_or_default();
                        println!("{}, seed {seed}: {what}", groups.name());
                        failures.lock().unwrap().insert(seed, failure);
                    }
                }
            });
        }
    });
    Played {
        failures: failures.into_inner().unwrap(),
        undos: undos.into_inner(),
    }
}

/// Returns one short script for each kind of failure.
fn examples(groups: Groups, played: &Played) -> Vec<String> {
    let mut kinds: BTreeMap<Kind, (u64, Failure)> = BTreeMap::new();
    for (seed, failure) in &played.failures {
        kinds
            .entry(failure.wrong.kind)
            .or_insert((*seed, failure.clone()));
    }
    let script = |(seed, failure): (u64, Failure)| {
        shrink::shrunk(seed, groups, &shrink::steps(seed, groups), failure)
    };
    kinds.into_values().map(script).collect()
}

#[test]
fn undo_gives_back_what_one_author_did() {
    if variable("TOUCHMARK_REPORT").is_some() {
        return report();
    }
    for off in Feature::off() {
        parts::not_tested(&format!("generated sessions: {off}"));
    }
    let named = std::env::var("TOUCHMARK_GROUP").unwrap_or_default();
    let groups = Groups::named(&named);
    if let Some(seed) = variable("TOUCHMARK_SEED") {
        return one(groups, seed);
    }
    let mut runs = vec![(groups, QUICK)];
    if named.is_empty() {
        runs.extend(Feature::alone().map(|group| (Groups::Only(group), QUICK_ALONE)));
    }
    let is_long = parts::long(&format!("{ALL} generated sessions of each group"));
    let from = variable("TOUCHMARK_FROM").unwrap_or(1);
    let mut scripts = Vec::new();
    for (groups, quick) in runs {
        let count = variable("TOUCHMARK_SEEDS").unwrap_or(if is_long { ALL } else { quick });
        let since = Instant::now();
        let played = played(groups, from, count);
        println!(
            "{}: {count} sessions, {} undos, {} wrong, {:.0} s",
            groups.name(),
            played.undos,
            played.failures.len(),
            since.elapsed().as_secs_f64()
        );
        for (seed, failure) in &played.failures {
            println!("  seed {seed}: {:?}", failure.wrong.kind);
        }
        scripts.extend(examples(groups, &played));
    }
    assert!(scripts.is_empty(), "{}", scripts.join("\n\n"));
}

fn one(groups: Groups, seed: u64) {
    let steps = shrink::steps(seed, groups);
    let Some(failure) = shrink::run(&steps, groups).0 else {
        return;
    };
    if std::env::var_os("TOUCHMARK_ONLY").is_some() {
        let upto = &steps[..=failure.at];
        panic!("{}", shrink::script(seed, groups, upto, &failure.wrong));
    }
    panic!("{}", shrink::shrunk(seed, groups, &steps, failure));
}

/// Prints how many sessions of each group fail.
fn report() {
    let count = variable("TOUCHMARK_SEEDS").unwrap_or(60);
    let from = variable("TOUCHMARK_FROM").unwrap_or(1);
    let named = std::env::var("TOUCHMARK_GROUP").unwrap_or_default();
    for (group, ..) in FEATURES {
        let groups = Groups::Only(*group);
        if !named.is_empty() && groups.name() != named {
            continue;
        }
        let since = Instant::now();
        let played = played(groups, from, count);
        let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
        for failure in played.failures.values() {
            *kinds.entry(failure.wrong.kind).or_default() += 1;
        }
        println!(
            "{group:?}: {} of {count} sessions wrong, {} undos, {:.0} s: {kinds:?}",
            played.failures.len(),
            played.undos,
            since.elapsed().as_secs_f64()
        );
        for example in examples(groups, &played) {
            println!("{example}\n");
        }
    }
}
