//! Agents, people, an editor, git and a killer race for the same few files, in
//! separate processes. What each of them really wrote is known from their logs.
//! Nothing that a guarded write displaced was unseen, no answer was out of
//! date, no declared write is misattributed, and no session is told a wrong
//! state of its copies.
//!
//! `TOUCHMARK_SEED=N` runs only that seed. `TOUCHMARK_SOAK=1` (`tests/run
//! --soak`) runs new ones for `TOUCHMARK_RACE_SECONDS`, by default 180.

use std::time::{Duration, Instant};

use touchmark_tests::parts;
use touchmark_tests::race::arena;

/// The name of the test by which this program becomes a player.
const PLAYER: &str = "race::a_player";

/// The rounds that are always run, each with what only it has.
const ALWAYS: &[(u64, &str)] = &[
    (3, "the daemon lives, and is stopped: nothing is `unknown`"),
    (5, "the daemon and agents are killed, and it is stopped"),
    (7, "the daemon and agents are killed"),
];

/// Seeds that have failed, and why they did.
const REGRESSIONS: &[(u64, &str)] = &[];

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a player if the process is one. Otherwise does nothing.
#[test]
fn a_player() {
    arena::play();
}

#[test]
fn nothing_unseen_is_lost_and_nothing_declared_misattributed() {
    if std::env::var_os(arena::SEAT).is_some() {
        return;
    }
    let run = |seed, length| {
        let report = arena::round(seed, length, PLAYER);
        println!("seed {seed}: {report}");
    };
    let soak = parts::long("races with more seeds, for minutes");
    let length = variable("TOUCHMARK_RACE_ROUND").unwrap_or(if soak { 15 } else { 3 });
    let length = Duration::from_secs(length);
    if let Some(seed) = variable("TOUCHMARK_SEED") {
        return run(seed, length);
    }
    for (seed, _) in ALWAYS.iter().chain(REGRESSIONS) {
        run(*seed, length);
    }
    if !soak {
        return;
    }
    let end =
        Instant::now() + Duration::from_secs(variable("TOUCHMARK_RACE_SECONDS").unwrap_or(180));
    let start = std::process::id();
    for seed in u64::from(start).. {
        if Instant::now() > end {
            break;
        }
        run(seed, length);
    }
}
