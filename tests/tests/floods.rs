//! Hostile clients that send, hold open, or leave unread too much (LIM-1): they
//! are limited and refused with a hint, and other clients are not affected.
//! Hostile messages are in `hostile.rs`.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Client, World, beside_a_neighbour, user};

#[test]
fn lim1_a_thousand_idle_connections() {
    let world = World::new();
    let mut client = world.client();
    let rss = |client: &mut Client| client.ok("status", json!({}))["rssBytes"].as_u64().unwrap();
    let before = rss(&mut client);
    let idle: Vec<Client> = (0..1000)
        .map(|_| {
            let mut idle = world.client();
            idle.ok("ping", json!({}));
            idle
        })
        .collect();
    let status = client.ok("status", json!({}));
    assert_eq!(status["connections"], 1001, "{status}");
    let after = rss(&mut client);
    assert!(
        after.saturating_sub(before) < 32 << 20,
        "1,000 idle connections cost {} bytes",
        after - before
    );
    drop(idle);
    let end = Instant::now() + PATIENCE;
    while client.ok("status", json!({}))["connections"] != 1 {
        assert!(Instant::now() < end, "connections stay");
    }
}

/// A subscriber that never reads is disconnected. A client that sends requests
/// and never reads is no longer served, or disconnected. Other clients are not
/// affected.
#[test]
fn lim1_a_reader_that_never_reads() {
    let mut world = World::new();
    let mut agent = world.session("s");
    // A long name makes large events.
    let name = format!("{}a.txt", format!("{}/", "d".repeat(200)).repeat(10));
    world.file(&name, "start\n");
    agent.read(&name);
    let mut deaf = UnixStream::connect(world.socket()).unwrap();
    deaf.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscribe\"}\n")
        .unwrap();
    // And one that only asks.
    let mut asking = UnixStream::connect(world.socket()).unwrap();
    asking
        .set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let question = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n".repeat(1000);
    for _ in 0..200 {
        if asking.write_all(&question).is_err() {
            break;
        }
    }
    let mut number = 0;
    // 16 MiB of events and answers at the most stay in the daemon for one
    // reader: it must be gone long before this ends.
    while agent.client.ok("status", json!({}))["connections"].as_u64() > Some(2) {
        for _ in 0..100 {
            number += 1;
            user::write(&world.path(&name), &format!("{number}\n"));
            agent.read(&name);
        }
        assert!(number < 100_000, "deaf readers stay after {number} changes");
    }
    let rss = agent.client.ok("status", json!({}))["rssBytes"]
        .as_u64()
        .unwrap();
    assert!(rss < 512 << 20, "{rss} bytes for deaf readers");
    world.healthy();
}

/// Sends a request repeatedly until it is refused. Returns how often it was
/// not.
fn until_refused(
    client: &mut Client,
    method: &str,
    mut params: impl FnMut(usize) -> Value,
    most: usize,
) -> usize {
    for number in 0..=most {
        if let Err(error) = client.call(method, params(number)) {
            assert_eq!(error.name, "tooLarge", "{method}: {error}");
            assert!(error.data["hint"].is_string(), "{method}: {}", error.data);
            assert!(error.data["limit"].is_u64(), "{method}: {}", error.data);
            return number;
        }
    }
    panic!("{method} has no limit");
}

#[test]
fn lim1_what_is_held_open_has_a_limit_and_a_hint() {
    let mut world = World::new();
    beside_a_neighbour(&world, || {
        let mut client = world.client();
        let subscribed = until_refused(&mut client, "subscribe", |_| json!({}), 64);
        assert_eq!(subscribed, 64);
        // Its own events would be all that it reads.
        for number in 1..=64 {
            let _of_another = client.call("unsubscribe", json!({"subscription": number}));
        }
        let begun = until_refused(
            &mut client,
            "command/begin",
            |_| json!({"session": "w", "bind": true, "paths": ["w/**"]}),
            1_000,
        );
        assert_eq!(begun, 1_000);
        // Another session has a window all the same.
        client.ok("command/begin", json!({"session": "v", "bind": true}));
        client.ok("session/close", json!({"session": "v", "forget": true}));
        client.ok("session/close", json!({"session": "w", "forget": true}));
        // Files in open edits, 9,990 at a time: the neighbour's own marks count
        // as well, and must not be what fills the last of two.
        let files = |edit: usize| -> Vec<Value> {
            let name = |number: usize| json!({"path": format!("e/{edit}/{number}")});
            (0..9_990).map(name).collect()
        };
        let begun = until_refused(
            &mut client,
            "edit/begin",
            |edit| json!({"session": "e", "files": files(edit), "bind": true, "ttlMs": u64::MAX}),
            2,
        );
        assert_eq!(begun, 2);
        // Some of one file fit between, then none, and closing makes room.
        let mark = json!({"session": "e", "path": "one"});
        let marked = until_refused(&mut client, "edit/mark", |_| mark.clone(), 20);
        assert!((1..=20).contains(&marked), "{marked}");
        client.ok("session/close", json!({"session": "e", "forget": true}));
        client.ok("edit/mark", mark);
    });
    let status = world.client().ok("status", json!({}));
    assert!(status["rssBytes"].as_u64().unwrap() < 512 << 20, "{status}");
    world.healthy();
}

/// Tens of thousands of requests in progress from several connections, each of
/// which reads only after it has sent all.
#[test]
fn lim1_floods_of_requests_are_answered_in_turn() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    world.session("f");
    beside_a_neighbour(&world, || {
        std::thread::scope(|scope| {
            for (method, params) in [
                ("sync", json!({})),
                ("ping", json!({})),
                ("status", json!({})),
                (
                    "file/status",
                    json!({"session": "f", "paths": ["a.txt"], "verify": true}),
                ),
                ("session/open", json!({"session": "f"})),
            ] {
                let world = &world;
                scope.spawn(move || {
                    const MANY: usize = 3_000;
                    let line =
                        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                    let mut client = world.client();
                    let mut stream = client.stream().try_clone().unwrap();
                    stream.set_write_timeout(None).unwrap();
                    let said = std::thread::spawn(move || {
                        stream.write_all(format!("{line}\n").repeat(MANY).as_bytes())
                    });
                    for _ in 0..MANY {
                        let answer = client.raw_line().expect("an answer");
                        assert!(answer.contains("\"result\""), "{method}: {answer}");
                    }
                    said.join().unwrap().unwrap();
                });
            }
        });
    });
    world.healthy();
}

/// A hundred clients that ask for lists of 1,000 rows: single requests, batches
/// and notifications, by clients that read nothing, connect again when nothing
/// more is taken from them, or read everything. Another client waits for none of
/// these lists.
#[test]
fn lim7_lists_delay_no_other_client() {
    const HOSTILE: usize = 100;
    const LISTS: usize = 10;
    const ROUNDS: usize = 300;
    let mut world = World::new();
    let files: Vec<String> = (0..1_000).map(|n| format!("{n}.txt")).collect();
    for name in &files {
        world.file(name, "one\n");
    }
    world.session("h").read_all(&files);
    for name in &files {
        world.file(name, "one\ntwo\n");
    }
    world.file("a.txt", "one\n");
    let mut bystander = world.session("b");
    bystander.read("a.txt");
    // The same in another workspace, for what the machine does meanwhile.
    let quiet = World::new();
    quiet.file("a.txt", "one\n");
    let mut undisturbed = quiet.session("b");
    undisturbed.read("a.txt");

    let of_h = json!({"session": "h"});
    let lists = [
        ("modified/list", of_h.clone()),
        ("modified/list", json!({})),
        ("modified/take", json!({"session": "h", "peek": true})),
        ("file/list", of_h.clone()),
        ("file/status", json!({"session": "h", "paths": files})),
        ("file/log", json!({})),
        ("session/open", of_h),
    ];
    let mut client = world.client();
    for (method, params) in &lists {
        client.ok(method, params.clone());
    }
    let asked = |n: usize| -> Vec<u8> {
        let (method, params) = &lists[n % lists.len()];
        let mut one = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        match n % 5 {
            0 => format!("[{one},{one},{one}]\n").into_bytes(),
            1 => {
                one.as_object_mut().unwrap().remove("id");
                format!("{one}\n").into_bytes()
            }
            _ => format!("{one}\n").into_bytes(),
        }
    };
    let hostile = |n: usize| {
        let mut stream = UnixStream::connect(world.socket()).unwrap();
        stream
            .set_write_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        // The daemon takes no more than it answers.
        let _ = stream.write_all(&asked(n).repeat(LISTS));
        stream
    };
    let mut open: Vec<UnixStream> = (0..HOSTILE).map(hostile).collect();
    let readers: Vec<UnixStream> = (0..4).map(hostile).collect();
    std::thread::scope(|scope| {
        for mut stream in &readers {
            scope.spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        }
        let mut waited = [Vec::new(), Vec::new()];
        for n in 0..ROUNDS {
            if n % 3 == 0 {
                // The one before has gone, with what it has asked.
                open[n / 3 % HOSTILE] = hostile(n);
            }
            for (agent, waited) in [&mut bystander, &mut undisturbed]
                .into_iter()
                .zip(&mut waited)
            {
                let since = Instant::now();
                assert_eq!(agent.state("a.txt"), "fresh");
                waited.push(since.elapsed());
            }
        }
        let [beside, alone] = waited.map(|mut all| {
            all.sort_unstable();
            all[ROUNDS * 99 / 100]
        });
        println!("99 of 100 answers beside lists within {beside:?}, without {alone:?}");
        for stream in &readers {
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
        assert!(
            beside < Duration::from_millis(20).max(alone * 6),
            "{beside:?}, {alone:?}"
        );
    });
    world.healthy();
}
