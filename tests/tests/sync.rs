//! SYNC: an answer reflects everything that was written before the query.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::repeat::{Load, repetitions};
use touchmark_tests::{World, sha256, text, user};

/// Returns the number of writes in one run: 20,000, scaled by
/// `TOUCHMARK_REPEAT`.
fn writes() -> usize {
    20_000 * repetitions() / 30
}

/// The variable that makes this test program a writer process: for every line
/// on its input it performs the next write to the file and prints a line. A
/// shell script would be too slow.
const ROLE: &str = "TOUCHMARK_TEST_WRITER";

/// SYNC-1: 20,000 writes of another process (in place, by rename, by unlink and
/// creation, by truncation), each followed immediately by a query of this one,
/// with both cores busy. No write is missing.
#[test]
fn sync1_no_write_is_missing_from_the_next_answer() {
    if let Ok(path) = std::env::var(ROLE) {
        writer(path.as_ref());
        return;
    }
    let world = World::new();
    world.file("d/a.txt", "start\n");
    let mut agent = world.session("s");
    agent.read("d/a.txt");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sync::sync1_no_write_is_missing_from_the_next_answer",
        ])
        .args(["--nocapture", "--test-threads", "1"])
        .env(ROLE, world.path("d/a.txt"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = child.stdin.take().unwrap();
    let mut done = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    // The test framework speaks first.
    while line != "ready\n" {
        line.clear();
        assert_ne!(done.read_line(&mut line).unwrap(), 0, "the writer is gone");
    }
    let _load = Load::start();
    let mut missing = Vec::new();
    for number in 0..writes() {
        orders.write_all(b"\n").unwrap();
        let mut byte = [0];
        done.read_exact(&mut byte).unwrap();
        let status = agent.status("d/a.txt");
        let expected = content(number).map(|content| sha256(&content));
        if status["hash"].as_str() != expected.as_deref() {
            missing.push((number, status));
        }
    }
    drop(orders);
    assert!(child.wait().unwrap().success());
    assert!(
        missing.is_empty(),
        "{} of {} missing: {:?}",
        missing.len(),
        writes(),
        missing[0]
    );
}

/// Returns the file's content after the write with this number; `None` for no
/// file.
fn content(number: usize) -> Option<String> {
    (number % 5 != 3).then(|| format!("write {number}\n"))
}

/// Performs a write for each line of input, and prints a line after it.
fn writer(path: &std::path::Path) {
    let mut out = std::io::stdout();
    out.write_all(b"\nready\n").unwrap();
    out.flush().unwrap();
    let mut orders = std::io::stdin().lock();
    let mut order = [0];
    let mut number = 0;
    while orders.read_exact(&mut order).is_ok() {
        match (number % 5, content(number)) {
            (0, Some(content)) => user::write(path, &content),
            (1, Some(content)) => user::replace(path, &content),
            (2, Some(content)) => user::overwrite(path, &content),
            (_, Some(content)) => user::replace_by_link(path, &content),
            (_, None) => fs::remove_file(path).unwrap(),
        }
        number += 1;
        out.write_all(b".").unwrap();
        out.flush().unwrap();
    }
}

/// SYNC-1 between connections: one client's write is in another client's
/// answer, with many clients at the same time that share fences.
#[test]
fn sync1_concurrent_queries_each_see_their_own_write() {
    let world = World::new();
    let _load = Load::start();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let world = &world;
            scope.spawn(move || {
                let name = format!("d{}/f{worker}.txt", worker % 3);
                world.file(&name, "start\n");
                let mut agent = world.session(&format!("s{worker}"));
                agent.read(&name);
                for number in 0..300 {
                    let content = format!("{worker} {number}\n");
                    user::write(&world.path(&name), &content);
                    assert_eq!(agent.status(&name)["hash"], sha256(&content));
                }
            });
        }
    });
}

/// SYNC-5: files that are created in new directories.
#[test]
fn sync5_files_in_new_directories_are_seen() {
    let world = World::new();
    let mut agent = world.session("s");
    for number in 0..100 {
        let name = format!("n{number}/deep/er/a.txt");
        // Mentioned before any of its directories is there.
        agent.ok("file/mention", json!({"path": name}));
        world.file(&name, "one\n");
        assert_eq!(agent.status(&name)["hash"], sha256("one\n"), "{name}");
        assert_eq!(agent.taken(), [name.as_str()]);
        user::write(&world.path(&name), "two\n");
        assert_eq!(agent.taken(), [name.as_str()]);
    }
}

/// SYNC-6: a content that was closed and soon overwritten is recorded without a
/// query.
#[test]
fn sync6_a_closed_change_is_read_although_nobody_asks() {
    let world = World::new();
    let mut agent = world.session("s");
    // It is told of what is read, and asks for nothing.
    let mut listener = world.client();
    listener.ok("subscribe", json!({"kinds": ["version"]}));
    for number in 0..20 {
        let name = format!("f{number}.txt");
        world.file(&name, "one\n");
        agent.read(&name);
        user::write(&world.path(&name), "two\n");
        while listener.event()["version"]["hash"] != sha256("two\n") {}
        user::write(&world.path(&name), "three\n");
        agent.sync();
        let hashes: Vec<String> = agent
            .history(&name)
            .iter()
            .map(|version| text(version, "hash"))
            .collect();
        assert_eq!(
            hashes,
            [sha256("three\n"), sha256("two\n"), sha256("one\n")]
        );
    }
}

/// SYNC-6: a subscriber has received everything up to a `sync` before its
/// answer.
#[test]
fn sync6_events_come_before_the_answer_to_sync() {
    let world = World::new();
    let mut agent = world.session("s");
    let names: Vec<String> = (0..50).map(|number| format!("f{number}.txt")).collect();
    for name in &names {
        world.file(name, "one\n");
    }
    agent.read_all(&names);
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["version"]}));
    for round in 0..20 {
        for name in &names {
            user::write(&world.path(name), &format!("round {round}\n"));
        }
        subscriber.ok("sync", json!({}));
        let told: std::collections::BTreeSet<String> = subscriber
            .arrived()
            .iter()
            .filter(|event| event["version"]["hash"] == sha256(format!("round {round}\n")))
            .map(|event| text(&event["version"], "path"))
            .collect();
        assert_eq!(told.len(), names.len(), "round {round}");
    }
}

/// `subscribe` with a clock first replays what was missed, then continues, each
/// event once and in order.
#[test]
fn subscribe_replays_from_a_clock() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "0\n");
    agent.read("a.txt");
    let since = text(&agent.client.ok("sync", json!({})), "clock");
    for number in 1..=5 {
        user::write(&world.path("a.txt"), &format!("{number}\n"));
        agent.sync();
    }
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["version"], "since": since}));
    for number in 6..=10 {
        user::write(&world.path("a.txt"), &format!("{number}\n"));
        agent.sync();
    }
    let events = subscriber.events_until(|event| event["version"]["hash"] == sha256("10\n"));
    let hashes: Vec<String> = events
        .iter()
        .map(|event| text(&event["version"], "hash"))
        .collect();
    let expected: Vec<String> = (1..=10)
        .map(|number| sha256(format!("{number}\n")))
        .collect();
    assert_eq!(hashes, expected);
    let clocks: Vec<u64> = events
        .iter()
        .map(|event| {
            text(event, "clock")
                .split_once(':')
                .unwrap()
                .1
                .parse()
                .unwrap()
        })
        .collect();
    assert!(clocks.is_sorted(), "{clocks:?}");
    // A clock of another epoch.
    let error = subscriber.refused("subscribe", json!({"since": "1:1"}), "unknownClock");
    assert_eq!(error.code, -32021);
    // The same again through a restart.
    let mut world = world;
    world.restart();
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["version"], "since": since}));
    let events = subscriber.events_until(|event| event["version"]["hash"] == sha256("10\n"));
    assert_eq!(events.len(), 10);
}

/// What many facts have told is read beside the loop, and what comes meanwhile
/// follows: each event once and in order.
#[test]
fn subscribe_replays_much_while_more_comes() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "0\n");
    agent.read("a.txt");
    let since = text(&agent.client.ok("sync", json!({})), "clock");
    let path = world.path("a.txt");
    let mut write = move |numbers: std::ops::RangeInclusive<u64>| {
        for number in numbers {
            user::write(&path, &format!("{number}\n"));
            agent.sync();
        }
    };
    write(1..=150);
    let mut subscriber = world.client();
    let writer = std::thread::spawn(move || write(151..=300));
    subscriber.ok("subscribe", json!({"kinds": ["version"], "since": since}));
    let events = subscriber.events_until(|event| event["version"]["hash"] == sha256("300\n"));
    writer.join().unwrap();
    let hashes = events.iter().map(|event| text(&event["version"], "hash"));
    let expected = (1..=300).map(|number| sha256(format!("{number}\n")));
    assert!(hashes.eq(expected));
    let lines = |event: &Value| event["lines"]["added"] == 1 && event["lines"]["removed"] == 1;
    assert!(events.iter().all(lines), "{:?}", events.first());
    // One that has ended its connection gets nothing, and hinders no other.
    let mut gone = world.client();
    gone.send("subscribe", &json!({"since": since}));
    drop(gone);
    let mut last = world.client();
    last.ok("subscribe", json!({"kinds": ["version"], "since": since}));
    assert_eq!(
        last.events_until(|event| event["version"]["hash"] == sha256("300\n"))
            .len(),
        300
    );
}

/// A subscription that names a session and kinds receives only those events,
/// and ends.
#[test]
fn subscribe_selects_and_unsubscribe_ends() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("o");
    world.file("a.txt", "0\n");
    let mut subscriber = world.client();
    let subscribed = subscriber.ok(
        "subscribe",
        json!({"session": "s", "kinds": ["read", "stale"]}),
    );
    agent.read("a.txt");
    other.read("a.txt");
    user::write(&world.path("a.txt"), "1\n");
    subscriber.ok("sync", json!({}));
    let events = subscriber.arrived();
    let told: Vec<(String, String)> = events
        .iter()
        .map(|event| (text(event, "type"), text(event, "session")))
        .collect();
    assert_eq!(
        told,
        [("read".into(), "s".into()), ("stale".into(), "s".into())],
        "{events:?}"
    );
    for event in &events {
        assert_eq!(event["subscription"], subscribed["subscription"], "{event}");
    }
    subscriber.ok(
        "unsubscribe",
        json!({"subscription": subscribed["subscription"]}),
    );
    user::write(&world.path("a.txt"), "2\n");
    agent.read("a.txt");
    subscriber.ok("sync", json!({}));
    assert_eq!(subscriber.arrived(), Vec::<serde_json::Value>::new());
    subscriber.refused("subscribe", json!({"kinds": ["nonsense"]}), "invalidParams");
}

/// Returns the number of bytes that a process has read, from files and sockets.
fn bytes_read(pid: u32) -> u64 {
    let counted = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = counted
        .lines()
        .find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn sync4_a_start_reads_only_what_no_stat_vouches_for() {
    const LARGE: usize = 4 << 20;
    let mut world = World::asleep();
    // A minute unless told (FILE-5): too long for a test.
    world.set_env("TOUCHMARK_TEST_HORIZON_MS", "200");
    world.start();
    let names = ["a", "b", "c", "same", "linked", "d/moved", "d/e"];
    for name in names {
        world.file(name, vec![name.as_bytes()[0]; LARGE]);
    }
    // Past the horizon: what is younger may have been written once more.
    user::pause(300);
    let mut agent = world.session("s");
    agent.read_all(&names.map(String::from));
    assert_eq!(world.stop(), Some(0), "{}", world.log());

    world.start();
    let mut agent = world.session("s");
    for name in names {
        assert_eq!(agent.state(name), "fresh", "{name}");
    }
    let read = bytes_read(world.pid());
    assert!(read < LARGE as u64, "{read} bytes were read");

    assert_eq!(world.stop(), Some(0), "{}", world.log());
    let times = fs::metadata(world.path("a")).unwrap().modified().unwrap();
    user::overwrite(&world.path("a"), &"x".repeat(LARGE));
    let file = fs::File::options().append(true).open(world.path("a"));
    file.unwrap().set_modified(times).unwrap();
    fs::rename(world.path("b"), world.path("d/e")).unwrap();
    fs::rename(world.path("c"), world.path("b")).unwrap();
    user::overwrite(&world.path("same"), &"s".repeat(LARGE));
    fs::hard_link(world.path("linked"), world.outside().join("second")).unwrap();
    fs::rename(world.path("d/moved"), world.path("moved")).unwrap();
    world.start();
    let mut agent = world.session("s");
    // The same size and the same time of modification.
    assert_eq!(agent.state("a"), "stale");
    // Files that are as old as before, in the places of others.
    assert_eq!(agent.state("b"), "stale");
    assert_eq!(agent.state("d/e"), "stale");
    assert_eq!(agent.state("c"), "deleted");
    assert_eq!(agent.state("d/moved"), "deleted");
    assert_eq!(agent.state("same"), "fresh");
    // Its other name is outside of what is watched.
    assert_eq!(agent.state("linked"), "fresh");
    user::overwrite(&world.outside().join("second"), "two");
    assert_eq!(agent.state("linked"), "stale");
}

/// A run in which nothing happened stores the stats that it has found, so that
/// files are not read at each start only because they were young once.
#[test]
fn sync4_a_start_without_news_keeps_the_stats_that_it_found() {
    const LARGE: usize = 4 << 20;
    let mut world = World::asleep();
    // Every file is too young.
    world.set_env("TOUCHMARK_TEST_HORIZON_MS", "3600000");
    world.start();
    world.file("a", vec![b'a'; LARGE]);
    world.session("s").read("a");
    assert_eq!(world.stop(), Some(0), "{}", world.log());
    user::pause(300);
    world.set_env("TOUCHMARK_TEST_HORIZON_MS", "200");
    let clock = |world: &World| text(&world.client().ok("status", json!({})), "clock");
    let ask = json!({"session": "s", "paths": ["a"]});
    let mut clocks = Vec::new();
    for reads in [true, false] {
        world.start();
        let status = world.client().ok("file/status", ask.clone());
        assert_eq!(status["files"][0]["state"], "fresh", "{status}");
        let read = bytes_read(world.pid());
        assert_eq!(read >= LARGE as u64, reads, "{read} bytes were read");
        clocks.push(clock(&world));
        assert_eq!(world.stop(), Some(0), "{}", world.log());
    }
    assert_eq!(clocks[0], clocks[1], "no fact");
}
