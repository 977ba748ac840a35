//! Nothing that a user saved is lost, and nothing that was acknowledged is
//! forgotten, while users, agents, commands, undos, kills and a full disk meet
//! in one workspace.
//!
//! `TOUCHMARK_SEED=N` runs only that seed. `TOUCHMARK_SOAK=1` (`tests/run
//! --soak`) runs new ones for `TOUCHMARK_SOAK_SECONDS`, by default an hour.

use std::time::{Duration, Instant};

use touchmark_tests::soak::round;
use touchmark_tests::{mounts, parts};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_line_of_a_user_is_lost_in_trouble() {
    let soak = parts::long("users, agents, undos, kills and full disks for an hour");
    mounts::apart_if_possible("the soak: a full disk", |may_mount| {
        rounds(soak, may_mount);
    });
}

fn rounds(soak: bool, may_mount: bool) {
    let length = Duration::from_secs(if soak { 60 } else { 6 });
    let run = |seed| println!("seed {seed}: {:?}", round(seed, length, may_mount));
    if let Some(seed) = variable("TOUCHMARK_SEED") {
        return run(seed);
    }
    run(1);
    let seconds = variable("TOUCHMARK_SOAK_SECONDS").unwrap_or(3_600);
    let end = Instant::now() + Duration::from_secs(seconds);
    for seed in u64::from(std::process::id()).. {
        if !soak || Instant::now() > end {
            break;
        }
        run(seed);
    }
}
