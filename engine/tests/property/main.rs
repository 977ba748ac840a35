//! The engine against its rules: random runs in which everything is late. After
//! every step, what must be true at all times is checked. `runs` says how to
//! repeat a run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub)] // the modules of one test are its own world

mod asks;
mod audit;
mod chaos;
mod content;
mod disk;
mod fuzzed;
mod inputs;
mod op;
mod regressions;
#[path = "../runs/mod.rs"]
mod runs;
mod scenarios;
#[path = "../../../proto/tests/arbitrary/schema.rs"]
mod schema;
mod script;
#[path = "../../../fuzz/seeds.rs"]
mod seeds;
mod world;

#[test]
fn chaos() {
    runs::explore(
        (600_000, 6_000_000),
        |seed| script::script(seed, if seed % 4 == 0 { 40 } else { 200 }),
        chaos::run,
    );
}

#[test]
fn chaos_at_rest() {
    runs::explore(
        (200_000, 2_000_000),
        |seed| script::script(seed, if seed % 4 == 0 { 40 } else { 200 }).at_rest(),
        chaos::run,
    );
}
