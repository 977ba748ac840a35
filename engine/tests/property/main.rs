//! The engine against its rules: random runs, checked after every step.
//!
//! `TOUCHMARK_STEPS` sets how many steps each kind of run takes in all,
//! `TOUCHMARK_SEED` runs one seed only and prints the way of the shrunk run
//! through the engine, `TOUCHMARK_FAILURES` collects that many kinds of
//! failures before it stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub)] // the modules of one test are its own world

mod asks;
mod audit;
mod chaos;
mod content;
mod disk;
mod eager;
mod fuzzed;
mod inputs;
mod model;
mod op;
mod regressions;
mod rng;
mod scenarios;
mod script;
mod shrink;
mod world;

use script::Script;

fn steps(default: u64) -> u64 {
    std::env::var("TOUCHMARK_STEPS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn explore(
    steps: u64,
    make: impl Fn(u64) -> Script,
    run: impl Fn(&Script) -> Result<u64, (usize, String)>,
) {
    let only: Option<u64> = std::env::var("TOUCHMARK_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let mut done = 0;
    let mut seed = only.unwrap_or(1);
    let mut failures: Vec<String> = Vec::new();
    let wanted: usize = std::env::var("TOUCHMARK_FAILURES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    // The hook is one for all threads.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let loud = std::panic::take_hook();
    let here = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Only the runs on this thread are expected to fail.
        if std::thread::current().id() != here {
            eprintln!("{info}");
        }
    }));
    while done < steps {
        let script = make(seed);
        match shrink::caught(|| run(&script)) {
            Ok(count) => done += count,
            Err((_, first)) => {
                done += 200;
                let (small, why) = shrink::shrink(&script, &run);
                let kind = why.split(':').next().unwrap_or_default().to_owned();
                if only.is_some() {
                    world::TRACE.store(true, std::sync::atomic::Ordering::Relaxed);
                    let _ = shrink::caught(|| run(&small));
                }
                if !failures.iter().any(|text| text.starts_with(&kind)) {
                    failures.push(format!(
                        "{kind} failed with seed {seed}: {why}\nfirst: {}\ntick {}, initial {:?}\n{:#?}",
                        first.chars().take(300).collect::<String>(),
                        small.tick, small.initial, Lines(&small.ops)
                    ));
                }
                if failures.len() >= wanted {
                    break;
                }
            }
        }
        if only.is_some() {
            break;
        }
        seed += 1;
    }
    std::panic::set_hook(loud);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// One step a line.
struct Lines<'a>(&'a [op::Op]);

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for op in self.0 {
            writeln!(f, "  {op:?},")?;
        }
        Ok(())
    }
}

#[test]
fn chaos() {
    explore(
        steps(600_000),
        |seed| script::script(seed, if seed % 4 == 0 { 40 } else { 200 }),
        chaos::run,
    );
}

#[test]
fn eager() {
    explore(
        steps(500_000),
        |seed| script::eager_script(seed, if seed % 4 == 0 { 30 } else { 120 }),
        eager::run,
    );
}
