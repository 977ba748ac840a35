//! DUR-1: what was reported as committed is stored, whatever happens next.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::*;
use touchmark_tests::children;

#[test]
fn a_copy_at_any_moment_opens_with_everything_reported() {
    let directory = tempfile::tempdir().unwrap();
    let world = world(&directory.path().join("live"));
    for round in 0..20_u64 {
        let first = round * 20 + 1;
        world.store(&records(first..=first + 9));
        // These are in progress while the copy is made.
        for record in records(first + 10..=first + 19) {
            world.commit(record.n, vec![record]);
        }
        let crashed = directory.path().join(format!("crashed-{round}"));
        copy(&directory.path().join("live"), &crashed);
        for n in first + 10..=first + 19 {
            assert_eq!(world.event(), StoreEvent::Committed { turn: n });
        }

        let copied = super::world(&crashed);
        assert_eq!(copied.opened.trouble, None);
        assert_eq!(copied.opened.epoch, world.opened.epoch);
        let last = copied.opened.last;
        assert!(last >= first + 9, "{last} < {}", first + 9);
        assert_eq!(copied.opened.facts, records(1..=last));
    }
}

const CHILD: &str = "TOUCHMARK_TEST_STORE";

/// Not a test: the process that [`a_killed_process_loses_nothing_it_reported`]
/// kills.
#[test]
#[ignore = "run by another test"]
fn child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let world = world_with(&Options::new(directory, "/workspace"));
    let start = world.opened.last + 1;
    for n in start..start + 1_000_000 {
        world.commit(n, vec![record(n)]);
        assert_eq!(world.event(), StoreEvent::Committed { turn: n });
        println!("stored {n}");
    }
}

#[test]
fn a_killed_process_loses_nothing_it_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut epoch = None;
    let mut reported = 0;
    for kill_after in [1, 50, 500] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "store::tests::durable::child"])
            .args(["--ignored", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = children::start(&mut command).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let target = reported + kill_after;
        for line in lines {
            if let Some((_, n)) = line.unwrap().split_once("stored ") {
                reported = n.parse().unwrap();
            }
            if reported == target {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(reported >= target);

        let world = world(directory.path());
        assert_eq!(world.opened.trouble, None);
        assert!(world.opened.last >= reported);
        assert_eq!(world.opened.facts, records(1..=world.opened.last));
        assert_eq!(*epoch.get_or_insert(world.opened.epoch), world.opened.epoch);
        reported = world.opened.last;
        world.close();
    }
}
