//! The log as a queue (TEL-2, TEL-4).

use super::*;
use touchmark_engine::Refusal;

/// Returns facts of which every second has a record.
fn facts(numbers: std::ops::RangeInclusive<u64>) -> Vec<Record> {
    numbers
        .map(|n| Record {
            n,
            time: n,
            fact: match n % 2 {
                0 => Fact::ResetTold { session: session() },
                _ => Fact::Refused {
                    session: session(),
                    path: None,
                    cause: Refusal::Stale,
                },
            },
        })
        .collect()
}

fn after(world: &World, n: u64) -> Vec<u64> {
    let reader = world.opened.store.exports().unwrap().reader().unwrap();
    let mut found = Vec::new();
    reader
        .stored_after(n, |record| {
            found.push(record.n);
            true
        })
        .unwrap();
    found
}

fn progress(n: u64) -> Progress {
    Progress {
        n,
        state: b"state".to_vec(),
    }
}

#[test]
fn tel_2_the_position_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    assert!(!world.opened.exporting);
    let exports = world.opened.store.exports().unwrap();
    assert_eq!(exports.reader().unwrap().progress().unwrap(), None);
    world.store(&facts(1..=3));
    exports.advance(progress(2));
    world.close();
    let world = super::world(directory.path());
    assert!(world.opened.exporting);
    let exports = world.opened.store.exports().unwrap();
    let found = exports.reader().unwrap().progress().unwrap();
    assert_eq!(found, Some(progress(2)));
    assert_eq!(after(&world, 2), [3]);
    exports.end();
    world.close();
    assert!(!super::world(directory.path()).opened.exporting);
}

#[test]
fn tel_4_what_is_still_to_be_sent_stays_under_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(directory.path());
    world.opened.store.exports().unwrap().advance(progress(4));
    world.store(&facts(1..=10));
    world.opened.store.snapshot(8, vec![1]);
    world.close();
    let world = super::world(directory.path());
    assert_eq!(after(&world, 0), [5, 6, 7, 8, 9, 10]);
    assert_eq!(numbers(&world.opened.facts), [9, 10]);
    let exports = world.opened.store.exports().unwrap();
    assert_eq!(exports.dropped(), 0);
    exports.advance(progress(7));
    world.close();
    let world = super::world(directory.path());
    assert_eq!(after(&world, 0), [8, 9, 10]);
    let exports = world.opened.store.exports().unwrap();
    assert_eq!(exports.dropped(), 0);
    // Without an export nothing waits.
    exports.end();
    world.close();
    assert_eq!(after(&super::world(directory.path()), 0), [9, 10]);
}

#[test]
fn tel_4_a_purge_waits_for_nothing_and_counts() {
    let directory = tempfile::tempdir().unwrap();
    let world = world_with(&Options {
        is_exported: |fact| matches!(fact, Fact::Refused { .. }),
        ..options(directory.path())
    });
    world.opened.store.exports().unwrap().advance(progress(2));
    world.store(&facts(1..=10));
    world.opened.store.snapshot(9, vec![1]);
    world.opened.store.purge();
    world.close();
    let world = super::world(directory.path());
    assert_eq!(after(&world, 0), [10]);
    // 3, 5, 7 and 9 had records.
    assert_eq!(world.opened.store.exports().unwrap().dropped(), 4);
}
