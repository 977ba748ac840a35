//! Random steps on a real file system, and every answer compared with it. See
//! `tests/src/disk_fuzz` for the steps and the comparisons.
//!
//! `TOUCHMARK_SEED=N` runs only that seed and prints its steps,
//! `TOUCHMARK_ONLY=3,7,9` only these of its steps. With `TOUCHMARK_ONLY`, even
//! if empty, a failure is reported without a search for a shorter list of
//! steps. `TOUCHMARK_SOAK=1` (`tests/run --soak`) runs 1,000 seeds or
//! `TOUCHMARK_SEEDS`, beginning with `TOUCHMARK_FROM`. With
//! `TOUCHMARK_FAILURES` it continues until that many have failed.

use touchmark_tests::disk_fuzz::shrink;
use touchmark_tests::{mounts, parts};

/// The number of seeds that are always run.
const SEEDS: u64 = 24;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_answer_is_what_the_disk_holds() {
    let soak = parts::long("the file system fuzz with 1,000 seeds");
    mounts::apart_if_possible("the file system fuzz: mounts", |may_mount| {
        fuzz(soak, may_mount);
    });
}

fn fuzz(soak: bool, may_mount: bool) {
    let first = variable("TOUCHMARK_SEED");
    let count = variable("TOUCHMARK_SEEDS").unwrap_or(if soak { 1_000 } else { SEEDS });
    let wanted = variable("TOUCHMARK_FAILURES").unwrap_or(1);
    let from = variable("TOUCHMARK_FROM").unwrap_or(1);
    let seeds = match first {
        Some(seed) => seed..=seed,
        None => from..=from + count - 1,
    };
    let mut failures = Vec::new();
    let mut left_open = (0, 0);
    for seed in seeds {
        let steps = shrink::steps(seed);
        let run = shrink::run(&steps, may_mount, first.is_some());
        left_open.0 += run.left_open.0;
        left_open.1 += run.left_open.1;
        if let Some(failure) = run.failure {
            let text = if std::env::var_os("TOUCHMARK_ONLY").is_some() {
                let shrink::Failure { at, wrong } = failure;
                format!("{:?}: seed {seed}, step {at}: {}", wrong.row, wrong.what)
            } else {
                shrink::shrunk(seed, &steps, failure, may_mount)
            };
            println!("{text}");
            failures.push(text);
            if failures.len() as u64 >= wanted {
                break;
            }
        }
    }
    println!("left open: {} of {} copies", left_open.0, left_open.1);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
