//! The engine against a slow model of what a person would say happened. Random
//! runs of users, agents and disks are played, and all answers are compared
//! every few steps. The model is written from the rules, not from the engine's
//! data structures. It also plays the people, so it has the truth. `runs` says
//! how to repeat a run.
//!
//! In plain runs, most steps come to rest before the next, and no name is a
//! symlink or hard link to another. The harder runs add what [`op::Harder`]
//! lists.
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
    explore((100_000, 2_000_000), op::Harder::default());
}

#[test]
fn and_so_it_does_where_names_lead_to_others() {
    let links = op::Harder {
        links: true,
        bursts: false,
    };
    explore((10_000, 200_000), links);
}

#[test]
fn and_where_nobody_looks_between_the_steps() {
    let bursts = op::Harder {
        links: false,
        bursts: true,
    };
    explore((10_000, 200_000), bursts);
}

#[test]
fn and_where_both_come_together() {
    let both = op::Harder {
        links: true,
        bursts: true,
    };
    explore((10_000, 200_000), both);
}

fn explore(steps: (u64, u64), harder: op::Harder) {
    runs::explore(
        steps,
        |seed| op::script(seed, if seed.is_multiple_of(4) { 30 } else { 120 }, harder),
        play::run,
    );
}
