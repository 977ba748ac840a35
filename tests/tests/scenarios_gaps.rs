//! Rows of the scenarios' table about a daemon that could not watch: it was
//! down (S11), or more happened than the kernel queues for it (S43).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use touchmark_tests::{authors, own_worlds, paths, sha256, text, user};

#[test]
fn s11_the_daemon_is_down_while_a_user_edits() {
    own_worlds(|world, rep| {
        let names = [
            "edited.txt",
            "deleted.txt",
            "same.txt",
            "agent.txt",
            "replaced.txt",
        ];
        let mut agent = world.session("s");
        for name in names {
            world.file(name, "one\n");
            agent.read(name);
        }
        world.file("created.txt", "");
        fs::remove_file(world.path("created.txt")).unwrap();
        agent.mark("created.txt", Some("new\n"));
        let edit = agent.begin("agent.txt", Some("agent\n")).unwrap();
        // By kill or by a clean end.
        if rep.is_multiple_of(2) {
            world.kill();
        } else {
            assert_eq!(world.stop(), Some(0), "{}", world.log());
        }
        user::write(&world.path("edited.txt"), "user\n");
        user::replace(&world.path("replaced.txt"), "user\n");
        fs::remove_file(world.path("deleted.txt")).unwrap();
        user::write(&world.path("same.txt"), "two\n");
        user::write(&world.path("same.txt"), "one\n");
        // The agent writes what it had declared.
        user::write(&world.path("agent.txt"), "agent\n");
        world.start();
        let mut agent = world.session("s");
        let changes = agent.take();
        assert_eq!(
            paths(&changes),
            ["deleted.txt", "edited.txt", "replaced.txt"],
            "{changes:?}"
        );
        for change in &changes {
            assert_eq!(authors(change), ["unknown"], "{change}");
            assert_eq!(change["evidence"][0], "gap", "{change}");
        }
        assert_eq!(agent.state("same.txt"), "fresh");
        // ATTR-13: a difference that matches an open declaration is the
        // session's; ATTR-9: the end of a daemon ends no edit.
        assert_eq!(agent.state("agent.txt"), "fresh");
        assert_eq!(agent.story("agent.txt"), ["agent:s declared"]);
        let outcome = agent.commit(&edit, "agent.txt", Some("agent\n"));
        assert_eq!(text(&outcome, "outcome"), "applied", "{outcome}");
        assert_eq!(agent.take(), Vec::<serde_json::Value>::new());
        // Watched again.
        user::write(&world.path("edited.txt"), "user again\n");
        let changes = agent.take();
        assert_eq!(paths(&changes), ["edited.txt"]);
        assert_eq!(changes[0]["hash"], sha256("user again\n"));
    });
}

/// The number of events in the storm.
const STORM: usize = 200_000;

/// Makes at least `events` events in a watched directory, about files that are
/// not tracked.
fn storm(directory: &Path, events: usize) {
    // Two files in turn: the kernel joins equal events that follow each other.
    let mut pair = ["even", "odd"].map(|name| File::create(directory.join(name)).unwrap());
    let short_lived = directory.join("short-lived");
    // Of ten events nine are a write; one in ten comes with a file that is
    // made and removed: four more.
    for number in 0..events * 10 / 14 {
        pair[number % 2].write_all(b"x").unwrap();
        if number % 10 == 0 {
            fs::write(&short_lived, "x").unwrap();
            fs::remove_file(&short_lived).unwrap();
        }
    }
}

#[test]
fn s43_the_queue_overflows_in_a_storm_of_200_000_events() {
    own_worlds(|world, _| {
        let names: Vec<String> = (0..60)
            .map(|number| format!("d{}/f{number}.txt", number % 3))
            .collect();
        for name in &names {
            world.file(name, "one\n");
        }
        let mut agent = world.session("s");
        agent.read_all(&names);
        let directories = ["d0", "d1", "d2"].map(|name| world.path(name));
        let (seen, unseen) = names.split_at(30);
        let mut listed = Vec::new();

        // Half of it while the daemon runs: each edit is asked about at once.
        std::thread::scope(|scope| {
            for directory in &directories {
                scope.spawn(|| storm(directory, STORM / 6));
            }
            for name in seen.iter().step_by(3) {
                user::replace(&world.path(name), "two\n");
                assert_eq!(agent.state(name), "stale", "{name}");
                user::write(&world.path(name), "three\n");
                listed.extend(agent.taken());
                assert!(listed.contains(name), "{name} is not in {listed:?}");
            }
        });

        // Half of it while the daemon stands still, with edits before, amid
        // and behind what the kernel drops.
        agent.mark(&unseen[1], Some("agent\n"));
        let pid = Pid::from_raw(world.pid().cast_signed()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        user::write(&world.path(&unseen[0]), "two\n");
        std::thread::scope(|scope| {
            for directory in &directories {
                scope.spawn(|| storm(directory, STORM / 6));
            }
            fs::remove_file(world.path(&unseen[3])).unwrap();
            user::replace(&world.path(&unseen[6]), "two\n");
        });
        user::write(&world.path(&unseen[9]), "two\n");
        user::write(&world.path(&unseen[1]), "agent\n");
        user::write(&world.path(&unseen[2]), "one\n");
        kill_process(pid, Signal::CONT).unwrap();
        for (at, state) in [(9, "stale"), (0, "stale"), (3, "deleted"), (6, "stale")] {
            assert_eq!(agent.state(&unseen[at]), state, "{}", unseen[at]);
        }
        listed.extend(agent.taken());
        agent.sync();
        listed.extend(agent.taken());

        // Every change, each once, and nothing else.
        let changed: BTreeSet<&String> = seen
            .iter()
            .step_by(3)
            .chain([&unseen[0], &unseen[3], &unseen[6], &unseen[9]])
            .collect();
        listed.sort();
        let mut wanted: Vec<String> = changed.iter().map(|name| (*name).clone()).collect();
        wanted.sort();
        assert_eq!(listed, wanted);
        for name in &names {
            let fresh = agent.state(name) == "fresh";
            assert_eq!(fresh, !changed.contains(name), "{name}");
        }
        let status = agent.client.ok("status", json!({}));
        assert!(
            status["counters"]["overflows"].as_u64() >= Some(1),
            "nothing overflowed: {status}"
        );
    });
}
