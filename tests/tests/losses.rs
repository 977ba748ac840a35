//! LOSS-1: after an overflow of the event queue authors may be unknown, but
//! answers are still right.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use touchmark_tests::{Session, World, authors, paths, sha256, user};

fn signal(world: &World, signal: Signal) {
    let pid = Pid::from_raw(world.pid().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Makes more events in a directory than the kernel queues for a watcher that
/// does not read them.
fn storm(directory: &Path, name: &str) {
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // Each creation and removal is four events at least.
    for number in 0..limit / 3 {
        let path = directory.join(format!("{name}{}", number % 2));
        fs::write(&path, "x").unwrap();
        fs::remove_file(&path).unwrap();
    }
}

/// Ends the storm when dropped.
struct Clearing<'a>(&'a AtomicBool);

impl Drop for Clearing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn overflows(session: &mut Session) -> u64 {
    let status = session.client.ok("status", json!({}));
    status["counters"]["overflows"].as_u64().unwrap()
}

/// The daemon is stopped while more happens than the kernel queues for it. The
/// system's limit is never changed.
#[test]
fn loss1_an_overflow_is_followed_by_a_comparison() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let names: Vec<String> = (0..20).map(|number| format!("d/f{number}.txt")).collect();
    for name in &names {
        world.file(name, "one\n");
    }
    agent.read_all(&names);
    agent.mark(&names[10], Some("agent\n"));
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["overflow"]}));
    signal(&world, Signal::STOP);
    storm(&world.path("d"), "storm");
    user::write(&world.path(&names[0]), "two\n");
    fs::remove_file(world.path(&names[1])).unwrap();
    user::replace(&world.path(&names[2]), "two\n");
    user::write(&world.path(&names[10]), "agent\n");
    user::write(&world.path(&names[3]), "one\n");
    signal(&world, Signal::CONT);
    // No wrong `fresh`, from the first answer on.
    assert_eq!(agent.state(&names[0]), "stale");
    assert_eq!(agent.state(&names[1]), "deleted");
    let changes = agent.take();
    assert_eq!(paths(&changes), [&names[0][..], &names[1], &names[2]]);
    for change in &changes {
        assert_eq!(authors(change), ["unknown"], "{change}");
    }
    // ATTR-13: what was declared is the session's.
    assert_eq!(agent.story(&names[10]), ["agent:s declared"]);
    assert_eq!(subscriber.event()["type"], "overflow");
    let status = agent.client.ok("status", json!({}));
    assert!(
        status["counters"]["overflows"].as_u64() >= Some(1),
        "{status}"
    );
    // Watched as before.
    user::write(&world.path(&names[5]), "three\n");
    assert_eq!(agent.taken(), [names[5].as_str()]);
    assert_eq!(agent.status(&names[5])["hash"], sha256("three\n"));
    world.healthy();
}

/// The next overflow comes before the comparison after the previous one has
/// finished, repeatedly, with and without queries in between.
#[test]
fn loss1_overflows_in_a_row() {
    let mut world = World::new();
    let mut agent = world.session("s");
    // More than are compared at a time, and some that take a while.
    let names: Vec<String> = (0..2000)
        .map(|number| format!("d/f{number:04}.txt"))
        .collect();
    for (number, name) in names.iter().enumerate() {
        world.file(
            name,
            if number % 100 == 0 {
                "x".repeat(1 << 20)
            } else {
                "one\n".into()
            },
        );
    }
    agent.read_all(&names);
    let mut changed = Vec::new();
    for round in 0..4 {
        signal(&world, Signal::STOP);
        storm(&world.path("d"), "storm");
        // The first asked about is among the last to be compared.
        let name = &names[1990 - 300 * round];
        user::write(&world.path(name), "two\n");
        changed.push(name.as_str());
        signal(&world, Signal::CONT);
        if round % 2 == 0 {
            assert_eq!(agent.state(name), "stale");
            assert_eq!(agent.state(&names[1991 - 300 * round]), "fresh");
        }
    }
    // While events rain without an end, each answer is as of now.
    let raining = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while raining.load(Ordering::Relaxed) {
                storm(&world.path("d"), "rain");
            }
        });
        // Also where an expectation fails.
        let _end = Clearing(&raining);
        for (number, name) in names.iter().enumerate().skip(60).step_by(600) {
            if number % 1200 == 60 {
                // What comes meanwhile overflows the queue.
                signal(&world, Signal::STOP);
                storm(&world.path("d"), "storm");
                signal(&world, Signal::CONT);
            }
            user::write(&world.path(name), "two\n");
            assert_eq!(agent.state(name), "stale", "{name}");
            changed.push(name);
            assert_eq!(agent.state(&names[number + 1]), "fresh");
        }
    });
    changed.sort_unstable();
    assert_eq!(agent.taken(), changed);
    assert!(overflows(&mut agent) >= 4, "{}", overflows(&mut agent));
    world.healthy();
}
