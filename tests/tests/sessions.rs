//! Sessions, deliveries, history.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use touchmark_tests::{World, authors, paths, sha256, text, user};

#[test]
fn open_close_and_forget() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let mut events = world.client();
    events.ok("subscribe", json!({"kinds": ["session"]}));
    let opened = agent.ok(
        "session/open",
        json!({"agent": {"name": "tester", "version": "1"}}),
    );
    assert_eq!(opened["resumed"], false, "{opened}");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    user::write(&world.path("a.txt"), "two\n");
    let opened = agent.ok("session/open", json!({}));
    assert_eq!(opened["resumed"], true, "{opened}");
    assert_eq!(paths(opened["modified"].as_array().unwrap()), ["a.txt"]);
    // That was a look: it is still to be taken.
    let row = session(&world, "s").unwrap();
    assert_eq!(row["agent"]["name"], "tester", "{row}");
    assert_eq!(row["open"], true, "{row}");
    assert_eq!(row["stale"], 1, "{row}");
    assert_eq!(row["modified"], 1, "{row}");
    assert_eq!(agent.taken(), ["a.txt"]);
    // Closing aborts open edits.
    world.file("b.txt", "one\n");
    agent.read("b.txt");
    let edit = agent.begin("b.txt", Some("agent\n")).unwrap();
    agent.ok("session/close", json!({}));
    agent
        .client
        .refused("edit/commit", json!({"edit": edit}), "unknownEdit");
    assert_eq!(session(&world, "s").unwrap()["open"], false);
    user::write(&world.path("b.txt"), "agent\n");
    assert_eq!(agent.story("b.txt"), ["user unmarked"]);
    // It comes back with what it knew.
    let opened = agent.ok("session/open", json!({}));
    assert_eq!(opened["resumed"], true, "{opened}");
    assert_eq!(agent.taken(), ["b.txt"]);
    // Forgotten: what it knew is gone, the log stays, also after a restart.
    agent.ok("session/close", json!({"forget": true}));
    assert!(session(&world, "s").is_none());
    world.restart();
    assert!(session(&world, "s").is_none());
    let mut agent = world.session("s");
    assert_eq!(agent.state("a.txt"), "unread");
    let told: Vec<String> = agent
        .history("a.txt")
        .iter()
        .map(|version| text(version, "hash"))
        .collect();
    assert!(told.contains(&sha256("two\n")), "{told:?}");
    drop(events);
}

fn session(world: &World, name: &str) -> Option<Value> {
    let list = world.client().ok("session/list", json!({}));
    let rows = list["sessions"].as_array().unwrap();
    rows.iter().find(|row| row["session"] == name).cloned()
}

#[test]
fn mod1_what_is_listed() {
    let world = World::new();
    let mut agent = world.session("s");
    for name in [
        "edited.txt",
        "reverted.txt",
        "reread.txt",
        "deleted.txt",
        "same.txt",
    ] {
        world.file(name, "one\n");
        agent.read(name);
    }
    user::write(&world.path("edited.txt"), "one\ntwo\nthree\n");
    user::write(&world.path("reverted.txt"), "two\n");
    agent.sync();
    user::write(&world.path("reverted.txt"), "one\n");
    user::write(&world.path("reread.txt"), "two\n");
    agent.read("reread.txt");
    std::fs::remove_file(world.path("deleted.txt")).unwrap();
    let peeked = agent.ok("modified/take", json!({"peek": true}));
    assert_eq!(
        paths(peeked["changes"].as_array().unwrap()),
        ["deleted.txt", "edited.txt"]
    );
    let listed = agent.ok("modified/list", json!({}));
    assert_eq!(
        paths(listed["changes"].as_array().unwrap()),
        ["deleted.txt", "edited.txt"]
    );
    let changes = agent.take();
    assert_eq!(paths(&changes), ["deleted.txt", "edited.txt"]);
    let edited = changes
        .iter()
        .find(|change| change["path"] == "edited.txt")
        .unwrap();
    assert_eq!(
        edited["lines"],
        json!({"added": 2, "removed": 0}),
        "{edited}"
    );
    assert_eq!(edited["versions"], 1, "{edited}");
    assert_eq!(edited["kind"], "modified", "{edited}");
    assert_eq!(authors(edited), ["user"], "{edited}");
    assert_eq!(edited["evidence"], json!(["unmarked"]), "{edited}");
    // Delivered, then reverted: nothing further. The same bytes again later:
    // listed again.
    user::write(&world.path("edited.txt"), "one\n");
    assert_eq!(agent.taken(), Vec::<String>::new());
    user::write(&world.path("edited.txt"), "one\ntwo\nthree\n");
    assert_eq!(agent.taken(), ["edited.txt"]);
}

#[test]
fn mod2_explicit_acknowledgement() {
    let mut world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    user::write(&world.path("a.txt"), "two\n");
    let first = agent.ok("modified/take", json!({"ack": "explicit"}));
    assert_eq!(paths(first["changes"].as_array().unwrap()), ["a.txt"]);
    let again = agent.ok("modified/take", json!({"ack": "explicit"}));
    assert_eq!(paths(again["changes"].as_array().unwrap()), ["a.txt"]);
    world.restart();
    let mut agent = world.session("s");
    user::write(&world.path("b.txt"), "two\n");
    let third = agent.ok("modified/take", json!({"ack": "explicit"}));
    assert_eq!(
        paths(third["changes"].as_array().unwrap()),
        ["a.txt", "b.txt"]
    );
    // Up to the first cursor only.
    agent.ok("modified/ack", json!({"cursor": again["cursor"]}));
    agent.ok("modified/ack", json!({"cursor": again["cursor"]}));
    let rest = agent.ok("modified/take", json!({"ack": "explicit"}));
    assert_eq!(paths(rest["changes"].as_array().unwrap()), ["b.txt"]);
    agent.ok("modified/ack", json!({"cursor": rest["cursor"]}));
    assert_eq!(agent.taken(), Vec::<String>::new());
}

#[test]
fn mod2_take_of_some_paths_and_in_portions() {
    let world = World::new();
    let mut agent = world.session("s");
    let names: Vec<String> = (0..25).map(|number| format!("f{number:02}.txt")).collect();
    for name in &names {
        world.file(name, "one\n");
    }
    agent.read_all(&names);
    for name in &names {
        user::write(&world.path(name), "two\n");
    }
    let some = agent.ok("modified/take", json!({"paths": ["f03.txt", "./f05.txt"]}));
    assert_eq!(
        paths(some["changes"].as_array().unwrap()),
        ["f03.txt", "f05.txt"]
    );
    let mut rest = Vec::new();
    loop {
        let taken = agent.ok("modified/take", json!({"limit": 10}));
        let changes = taken["changes"].as_array().unwrap();
        assert!(changes.len() <= 10);
        rest.extend(paths(changes));
        if taken["more"] != true {
            break;
        }
    }
    rest.sort();
    assert_eq!(rest.len(), 23, "{rest:?}");
    rest.dedup();
    assert_eq!(rest.len(), 23, "{rest:?}");
    // Lists in portions by cursor.
    let mut listed = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = agent.ok("file/status", json!({"limit": 7, "cursor": cursor}));
        listed.extend(paths(page["files"].as_array().unwrap()));
        cursor = page["more"].clone();
        if cursor.is_null() {
            break;
        }
    }
    listed.sort();
    assert_eq!(listed, names);
}

#[test]
fn modified_list_of_everybody_since_a_clock() {
    let world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    user::write(&world.path("a.txt"), "two\n");
    let listed = agent.client.ok("modified/list", json!({}));
    assert_eq!(paths(listed["changes"].as_array().unwrap()), ["a.txt"]);
    let since = listed["clock"].clone();
    agent.edit(touchmark_tests::Way::Edit, "b.txt", "agent\n", |path| {
        user::write(path, "agent\n");
    });
    let listed = agent.client.ok("modified/list", json!({"since": since}));
    assert_eq!(paths(listed["changes"].as_array().unwrap()), ["b.txt"]);
    assert_eq!(authors(&listed["changes"][0]), ["agent:s"]);
    let error = agent
        .client
        .refused("modified/list", json!({"since": "12345:1"}), "unknownClock");
    assert_eq!(error.data["clock"], "12345:1", "{}", error.data);
}

#[test]
fn history_newest_first_in_portions() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "0\n");
    agent.read("a.txt");
    for number in 1..=9 {
        user::write(&world.path("a.txt"), &format!("{number}\n"));
        agent.sync();
    }
    let whole = agent.history("a.txt");
    assert_eq!(whole.len(), 10);
    for (number, version) in whole.iter().enumerate() {
        assert_eq!(
            version["hash"],
            sha256(format!("{}\n", 9 - number)),
            "{version}"
        );
        assert_eq!(version["path"], "a.txt");
    }
    let mut parts = Vec::new();
    let mut before = Value::Null;
    loop {
        let page = agent.client.ok(
            "file/history",
            json!({"path": "a.txt", "limit": 4, "before": before}),
        );
        parts.extend(page["versions"].as_array().unwrap().clone());
        before = page["more"].clone();
        if before.is_null() {
            break;
        }
    }
    assert_eq!(parts, whole);
}
