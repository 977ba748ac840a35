//! The engine against a slow model of what a person would say happened:
//! random runs of users, agents and disks, all answers compared every few
//! steps. The model is written from what the rules promise, not from how the
//! engine keeps them, and plays the people itself, so it knows the truth.
//! `runs` says how to repeat a run.
//!
//! By default most steps come to rest before the next, and no name leads to
//! another: `TOUCHMARK_MODEL=bursts` adds steps that nobody looks between,
//! `=links` links, mounts and exchanges, `=all` both. Of the last, some
//! disagreements are not decided yet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(unreachable_pub)] // the modules of one test are its own world

mod belief;
mod check;
mod claims;
mod disk;
mod edits;
mod lines;
mod names;
mod op;
mod people;
mod play;
mod requests;
#[path = "../runs/mod.rs"]
mod runs;
mod simulated;
mod stories;
mod text;

#[test]
fn the_engine_answers_what_a_person_would_say() {
    runs::explore(
        (100_000, 2_000_000),
        |seed| op::script(seed, if seed.is_multiple_of(4) { 30 } else { 120 }),
        play::run,
    );
}
