//! Sessions, deliveries, history.

use serde_json::{Value, json};
use touchmark_tests::{Session, Way, World, authors, paths, sha256, text, user};

#[test]
fn open_close_and_forget() {
    let mut world = World::new();
    let mut events = world.client();
    events.ok("subscribe", json!({"kinds": ["session"]}));
    let mut agent = Session::new(world.client(), "s", &world.path(""));
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

#[test]
fn ses1_looking_opens_no_session() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut client = world.client();
    world.session("known");
    for (method, params) in [
        ("file/status", json!({"paths": ["a.txt"]})),
        ("file/list", json!({})),
        ("file/recent", json!({"step": 1, "maxAge": 1})),
        (
            "file/isStale",
            json!({"path": "a.txt", "step": 1, "maxAge": 1}),
        ),
        ("modified/list", json!({})),
        ("modified/take", json!({})),
        ("modified/take", json!({"peek": true})),
        ("checkpoint/list", json!({})),
        ("model/list", json!({})),
        ("task/list", json!({})),
        ("call/stats", json!({})),
        ("stats", json!({})),
        ("warning/take", json!({})),
        ("session/compacted", json!({})),
        ("file/invalidate", json!({})),
        ("file/untrack", json!({"path": "a.txt"})),
    ] {
        let mut asked = params.clone();
        asked["session"] = json!("knowm");
        let error = client.refused(method, asked, "unknownSession");
        assert_eq!(error.data["candidates"], json!(["agent-1"]), "{method}");
    }
    client.ok("session/close", json!({"session": "knowm"}));
    let sessions = client.ok("session/list", json!({}));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    // What records opens one.
    client.ok("file/read", json!({"session": "knowm", "path": "a.txt"}));
    client.ok("file/status", json!({"session": "knowm"}));
}

#[test]
fn ses2_labels_are_never_given_twice() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let open = |world: &World, session: &str, agent: Option<&str>| {
        let agent = agent.map(|name| json!({"name": name, "version": "1"}));
        let asked = json!({"session": session, "agent": agent});
        text(&world.client().ok("session/open", asked), "label")
    };
    assert_eq!(open(&world, "a", Some("Claude Code")), "claude-1");
    assert_eq!(open(&world, "b", Some("codex-cli")), "codex-1");
    assert_eq!(open(&world, "c", Some("claude")), "claude-2");
    assert_eq!(open(&world, "d", None), "agent-1");
    assert_eq!(open(&world, "d", Some("gemini")), "agent-1", "it has one");
    // Nor a name that another session has.
    open(&world, "agent-2", None);
    assert_eq!(open(&world, "e", None), "agent-4");
    world.client().ok(
        "session/close",
        json!({"session": "claude-2", "forget": true}),
    );
    assert!(session(&world, "c").is_none());
    world.restart();
    assert_eq!(open(&world, "a", None), "claude-1");
    assert_eq!(open(&world, "c", Some("claude")), "claude-3");
    // A label stands beside the id.
    let mut agent = world.session("a");
    agent.read("a.txt");
    let mut other = world.session("b");
    other.read("a.txt");
    agent.edit(Way::Edit, "a.txt", "two\n", |path| {
        user::write(path, "two\n")
    });
    let taken = other.ok("modified/take", json!({}));
    assert_eq!(
        taken["changes"][0]["changedBy"],
        json!([{"kind": "agent", "session": "a", "label": "claude-1"}])
    );
    let history = other.client.ok("file/history", json!({"path": "a.txt"}));
    assert_eq!(history["versions"][0]["author"]["label"], "claude-1");
}

#[test]
fn ses3_a_beginning_names_a_session_only_to_look() {
    let world = World::new();
    world.file("a.txt", "one\n");
    for name in ["abc-1", "abd-2"] {
        world.session(name).read("a.txt");
    }
    let mut client = world.client();
    let mut known = |name: &str| -> Result<usize, String> {
        let files = client.call("file/status", json!({"session": name}));
        files
            .map(|files| files["files"].as_array().unwrap().len())
            .map_err(|error| error.name)
    };
    for name in ["abc-1", "abc", "agent-1", "abd"] {
        assert_eq!(known(name), Ok(1), "{name}");
    }
    for name in ["ab", "agent-", "abc-12", "x"] {
        assert_eq!(known(name), Err("unknownSession".into()), "{name}");
    }
    let error = client.refused("file/list", json!({"session": "ab"}), "unknownSession");
    assert_eq!(error.data["candidates"].as_array().unwrap().len(), 2);
    // To record by a beginning is to open another session.
    client.ok("file/read", json!({"session": "abc", "path": "a.txt"}));
    assert_eq!(session(&world, "abc").unwrap()["reads"], 1);
    assert_eq!(session(&world, "abc-1").unwrap()["reads"], 1);
    // By a label it is the one that has it.
    client.ok("file/read", json!({"session": "agent-2", "path": "a.txt"}));
    assert_eq!(session(&world, "abd-2").unwrap()["reads"], 2);
}
