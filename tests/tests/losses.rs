//! LOSS-1: a queue that overflows costs authorship, never truth.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use touchmark_tests::{World, authors, paths, sha256, user};

/// The daemon is stopped while more happens than the kernel keeps for it;
/// the limit itself is never touched.
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
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = Pid::from_raw(world.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    // Each creation and removal is four events at least.
    for number in 0..limit / 3 {
        let path = world.path(format!("d/storm{}", number % 2));
        fs::write(&path, "x").unwrap();
        fs::remove_file(&path).unwrap();
    }
    user::write(&world.path(&names[0]), "two\n");
    fs::remove_file(world.path(&names[1])).unwrap();
    user::replace(&world.path(&names[2]), "two\n");
    user::write(&world.path(&names[10]), "agent\n");
    user::write(&world.path(&names[3]), "one\n");
    kill_process(pid, Signal::CONT).unwrap();
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
