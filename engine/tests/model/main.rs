//! The engine against a slow model of what a person would say happened:
//! random runs of users, agents and disks, all answers compared every few
//! steps. The model is written from what the rules promise, not from how the
//! engine keeps them, and plays the people itself, so it knows the truth.
//!
//! By default each step comes to rest before the next, and no name leads to
//! another: `TOUCHMARK_MODEL=all` adds bursts, links, mounts and exchanges, of
//! which some disagreements are not decided yet, as are some of plain runs
//! beyond the default number of steps.
//!
//! `TOUCHMARK_STEPS` sets how many steps are taken, `TOUCHMARK_SEED` runs one
//! seed only and prints the shrunk run's way through the engine,
//! `TOUCHMARK_FAILURES` collects that many kinds of failures before it stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub)] // the modules of one test are its own world

mod belief;
mod check;
mod claims;
mod disk;
mod edits;
mod names;
mod op;
mod people;
mod play;
mod requests;
#[path = "../property/rng.rs"]
#[allow(dead_code)]
mod rng;
mod shrink;
mod simulated;
mod stories;
mod text;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_engine_answers_what_a_person_would_say() {
    let steps = number("TOUCHMARK_STEPS").unwrap_or(100_000);
    let only = number("TOUCHMARK_SEED");
    let wanted = number("TOUCHMARK_FAILURES").unwrap_or(1);
    let mut seed = only.unwrap_or(1);
    let mut done = 0;
    let mut failures: Vec<(String, String)> = Vec::new();
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    while done < steps {
        let script = op::script(seed, if seed.is_multiple_of(4) { 30 } else { 120 });
        match shrink::caught(&script) {
            Ok(count) => done += count,
            Err(_) => {
                done += 200;
                let (small, why) = shrink::shrink(&script);
                let kind = shrink::kind(&why).to_owned();
                if only.is_some() {
                    simulated::TRACE.store(true, std::sync::atomic::Ordering::Relaxed);
                    let _ = shrink::caught(&small);
                }
                if !failures.iter().any(|(known, _)| *known == kind) {
                    let steps: Vec<String> =
                        small.ops.iter().map(|op| format!("  {op:?},")).collect();
                    let text = format!(
                        "seed {seed}: {why}\ntick {}, turned {}, initial {:?}\n{}",
                        small.tick,
                        small.turned,
                        small.initial,
                        steps.join("\n")
                    );
                    failures.push((kind, text));
                }
            }
        }
        if only.is_some() || failures.len() as u64 >= wanted {
            break;
        }
        seed += 1;
    }
    std::panic::set_hook(loud);
    let all: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}
