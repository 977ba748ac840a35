//! ATTR and GUARD: marks, edits, how they end, and refusals.

use std::fs;
use std::io::Write;
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::user::{self, pause};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{Way, World, authors, sha256, text};

#[test]
fn guard4_what_was_not_read_or_is_stale_is_refused() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    let error = agent.begin("a.txt", None).unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.code),
        ("notRead", -32010),
        "{error}"
    );
    assert_eq!(error.data["path"], "a.txt", "{}", error.data);
    // A mark asks only when told to.
    let params = json!({"path": "a.txt", "requireRead": true});
    agent.refused("edit/mark", params, "notRead");
    agent.read("a.txt");
    user::write(&world.path("a.txt"), "two\n");
    let error = agent.begin("a.txt", None).unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.code),
        ("stale", -32011),
        "{error}"
    );
    assert_eq!(error.data["changedBy"][0]["kind"], "user", "{}", error.data);
    assert!(error.data["since"].is_u64(), "{}", error.data);
    let files = json!([{"path": "a.txt"}]);
    let begun = agent.ok("edit/begin", json!({"files": files, "force": true}));
    agent.abort(&text(&begun, "edit"));
    let begun = agent.ok("edit/begin", json!({"files": files, "requireRead": false}));
    agent.abort(&text(&begun, "edit"));
    // A new file needs no reading.
    let edit = agent.begin("new.txt", None).unwrap();
    agent.abort(&edit);
}

#[test]
fn begin_is_all_or_nothing() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("o");
    for name in ["a.txt", "b.txt", "c.txt"] {
        world.file(name, "one\n");
    }
    agent.read("a.txt");
    let files = json!([{"path": "a.txt"}, {"path": "b.txt"}, {"path": "c.txt"}]);
    let error = agent.refused("edit/begin", json!({"files": files}), "notRead");
    let refused = touchmark_tests::paths(error.data["files"].as_array().unwrap());
    assert_eq!(refused, ["b.txt", "c.txt"], "{}", error.data);
    // Nothing is held.
    other.read("a.txt");
    let edit = other.begin("a.txt", None).unwrap();
    other.abort(&edit);
    user::write(&world.path("a.txt"), "two\n");
    assert_eq!(agent.story("a.txt"), ["user unmarked"]);
}

#[test]
fn guard5_one_holder_at_a_time() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("o");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    other.read("a.txt");
    let edit = agent.begin("a.txt", None).unwrap();
    let error = other.begin("a.txt", None).unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.code),
        ("busy", -32012),
        "{error}"
    );
    assert_eq!(error.data["holder"], "s", "{}", error.data);
    assert!(error.data["deadline"].is_u64(), "{}", error.data);
    other.refused("edit/mark", json!({"path": "a.txt"}), "busy");
    // The same session may hold several.
    let second = agent.begin("a.txt", None).unwrap();
    agent.abort(&second);
    // Waiting: until the holder ends.
    let files = json!([{"path": "a.txt"}]);
    let waiting = other.client.send(
        "edit/begin",
        &json!({"session": "o", "files": files, "waitMs": 30_000}),
    );
    // The request has arrived when a later one of the same connection has
    // been answered.
    other.client.ok("ping", json!({}));
    agent.abort(&edit);
    let begun = other.client.answer(waiting).unwrap();
    other.abort(&text(&begun, "edit"));
    // Waiting in vain: busy at last.
    let edit = agent.begin("a.txt", None).unwrap();
    let error = other.refused("edit/begin", json!({"files": files, "waitMs": 50}), "busy");
    assert_eq!(error.data["holder"], "s", "{}", error.data);
    agent.abort(&edit);
}

#[test]
fn attr8_a_flag_lapses_at_its_deadline() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["edit"]}));
    let marked = agent.ok("edit/mark", json!({"path": "a.txt", "ttlMs": 50}));
    assert!(marked["edit"].is_string(), "{marked}");
    let events = subscriber.events_until(|event| event["phase"] == "lapsed");
    assert_eq!(events[0]["phase"], "begun", "{events:?}");
    user::write(&world.path("a.txt"), "two\n");
    assert_eq!(agent.taken(), ["a.txt"]);
    assert_eq!(agent.story("a.txt"), ["user unmarked"]);
}

#[test]
fn attr8_a_flag_speaks_for_one_change() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    agent.mark("a.txt", None);
    user::write(&world.path("a.txt"), "agent\n");
    agent.sync();
    user::write(&world.path("a.txt"), "user\n");
    assert_eq!(agent.taken(), ["a.txt"]);
    assert_eq!(agent.story("a.txt"), ["agent:s marked", "user unmarked"]);
}

#[test]
fn attr8_a_declared_mark_cannot_swallow_anothers_edit() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    agent.mark("a.txt", Some("agent\n"));
    user::write(&world.path("a.txt"), "user\n");
    assert_eq!(agent.taken(), ["a.txt"]);
    // The mark still stands, and matches once.
    user::write(&world.path("a.txt"), "agent\n");
    assert_eq!(agent.state("a.txt"), "fresh");
    user::write(&world.path("a.txt"), "user again\n");
    agent.sync();
    user::write(&world.path("a.txt"), "agent\n");
    agent.sync();
    assert_eq!(
        agent.story("a.txt"),
        [
            "user unmarked",
            "agent:s declared",
            "user unmarked",
            "user unmarked"
        ]
    );
}

#[test]
fn attr9_an_edit_ends_by_its_deadline() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["edit"]}));
    let files = json!([{"path": "a.txt"}]);
    let begun = agent.ok("edit/begin", json!({"files": files, "ttlMs": 50}));
    subscriber.events_until(|event| event["phase"] == "lapsed");
    let edit = text(&begun, "edit");
    agent
        .client
        .refused("edit/abort", json!({"edit": edit}), "unknownEdit");
    user::write(&world.path("a.txt"), "two\n");
    assert_eq!(agent.story("a.txt"), ["user unmarked"]);
}

#[test]
fn attr9_a_bound_edit_ends_with_its_connection() {
    let world = World::new();
    let mut watcher = world.client();
    watcher.ok("subscribe", json!({"kinds": ["edit"]}));
    let mut agent = world.session("s");
    for name in ["bound.txt", "free.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    let bound = json!([{"path": "bound.txt"}]);
    let bound = agent.ok("edit/begin", json!({"files": bound, "bind": true}));
    let free = agent.begin("free.txt", Some("agent\n")).unwrap();
    drop(agent);
    let events = watcher.events_until(|event| event["phase"] == "lapsed");
    assert_eq!(events.last().unwrap()["edit"], bound["edit"], "{events:?}");
    let mut agent = world.session("s");
    user::write(&world.path("bound.txt"), "user\n");
    user::write(&world.path("free.txt"), "agent\n");
    assert_eq!(agent.taken(), ["bound.txt"]);
    assert_eq!(
        agent.commit(&free, "free.txt", Some("agent\n"))["outcome"],
        "applied"
    );
}

#[test]
fn attr9_hooks_name_their_edits_by_call() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let files = json!([{"path": "a.txt", "expect": sha256("agent\n")}]);
    agent.ok("edit/begin", json!({"files": files, "callId": "c1"}));
    // Another connection, as each hook event is.
    let mut hook = world.session("s");
    user::write(&world.path("a.txt"), "agent\n");
    let done = hook.ok("edit/commit", json!({"callId": "c1"}));
    assert_eq!(done["files"][0]["outcome"], "applied", "{done}");
    hook.refused("edit/commit", json!({"callId": "c1"}), "unknownEdit");
    let begun = json!([{"path": "a.txt"}]);
    agent.ok("edit/begin", json!({"files": begun, "callId": "c2"}));
    hook.ok("edit/abort", json!({"callId": "c2"}));
}

#[test]
fn attr9_a_request_that_comes_too_late_has_no_effect() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("o");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    other.read("a.txt");
    let edit = agent.begin("a.txt", None).unwrap();
    let files = json!([{"path": "a.txt"}]);
    let params = json!({"files": files, "waitMs": 60_000, "withinMs": 50});
    let error = other.refused("edit/begin", params, "tooLate");
    assert_eq!(error.code, -32026, "{error}");
    agent.abort(&edit);
    // It does not hold the path after all.
    let edit = agent.begin("a.txt", None).unwrap();
    agent.abort(&edit);
}

#[test]
fn attr10_outcomes() {
    let world = World::new();
    let mut agent = world.session("s");
    let fresh = |agent: &mut touchmark_tests::Session, name: &str| {
        world.file(name, "one\n");
        agent.read(name);
        agent.begin(name, None).unwrap()
    };
    let edit = fresh(&mut agent, "applied.txt");
    user::write(&world.path("applied.txt"), "agent\n");
    let done = agent.commit(&edit, "applied.txt", Some("agent\n"));
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(done["version"]["evidence"], "marked", "{done}");
    assert_eq!(done["version"]["hash"], sha256("agent\n"), "{done}");

    let edit = fresh(&mut agent, "unchanged.txt");
    let done = agent.commit(&edit, "unchanged.txt", Some("one\n"));
    assert_eq!(done["outcome"], "unchanged", "{done}");

    world.file("not.txt", "one\n");
    agent.read("not.txt");
    let edit = agent.begin("not.txt", Some("agent\n")).unwrap();
    let done = agent.commit(&edit, "not.txt", None);
    assert_eq!(done["outcome"], "notApplied", "{done}");

    // Written, and at once overwritten: both versions are recorded, though
    // one of them may never have been on disk when the daemon looked.
    let edit = fresh(&mut agent, "over.txt");
    user::write(&world.path("over.txt"), "agent\n");
    user::write(&world.path("over.txt"), "user\n");
    let done = agent.commit(&edit, "over.txt", Some("agent\n"));
    assert_eq!(done["outcome"], "overwritten", "{done}");
    let hashes: Vec<Value> = agent
        .history("over.txt")
        .iter()
        .map(|version| version["hash"].clone())
        .collect();
    assert!(hashes.contains(&json!(sha256("agent\n"))), "{hashes:?}");
    assert!(hashes.contains(&json!(sha256("user\n"))), "{hashes:?}");
    assert_eq!(agent.taken(), ["over.txt"]);

    // A user wrote while the edit was open, was seen by the daemon, and
    // was overwritten.
    let edit = fresh(&mut agent, "clobbered.txt");
    user::write(&world.path("clobbered.txt"), "user\n");
    agent.sync();
    user::write(&world.path("clobbered.txt"), "agent\n");
    let done = agent.commit(&edit, "clobbered.txt", Some("agent\n"));
    assert_eq!(done["outcome"], "clobbered", "{done}");
    let changes = agent.take();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["lost"]["hash"], sha256("user\n"), "{changes:?}");
    assert_eq!(agent.take(), Vec::<Value>::new());
}

#[test]
fn attr4_a_commit_with_a_hash_gives_the_rest_to_the_user() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let edit = agent.begin("a.txt", None).unwrap();
    user::write(&world.path("a.txt"), "agent\n");
    agent.sync();
    user::write(&world.path("a.txt"), "agent\nuser\n");
    agent.sync();
    let done = agent.commit(&edit, "a.txt", Some("agent\n"));
    assert_eq!(done["outcome"], "overwritten", "{done}");
    let story = agent.story("a.txt");
    // The mark claims at its end: the row that says so is the newest.
    assert_eq!(story, ["user unmarked", "agent:s marked"], "{story:?}");
    let changes = agent.take();
    assert_eq!(authors(&changes[0]).last().unwrap(), "user", "{changes:?}");
    // ATTR-11: by corrections, not by rewriting.
    let rows = agent.history("a.txt");
    assert!(rows.iter().any(|row| row["amends"].is_string()), "{rows:?}");
}

#[test]
fn attr4_an_abort_gives_everything_to_the_user() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let edit = agent.begin("a.txt", None).unwrap();
    user::write(&world.path("a.txt"), "two\n");
    agent.sync();
    agent.abort(&edit);
    assert_eq!(agent.taken(), ["a.txt"]);
    assert_eq!(agent.story("a.txt"), ["user unmarked"]);
    assert_eq!(agent.state("a.txt"), "stale");
}

#[test]
fn attr1_a_declared_deletion_is_the_sessions() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("o");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    other.read("a.txt");
    let files = json!([{"path": "a.txt", "expect": "absent"}]);
    let begun = agent.ok("edit/begin", json!({"files": files}));
    fs::remove_file(world.path("a.txt")).unwrap();
    let files = json!([{"path": "a.txt", "hash": "absent"}]);
    let done = agent.client.ok(
        "edit/commit",
        json!({"edit": begun["edit"], "files": files}),
    );
    assert_eq!(done["files"][0]["outcome"], "applied", "{done}");
    assert_eq!(agent.taken(), Vec::<String>::new());
    let changes = other.take();
    assert_eq!(changes[0]["kind"], "deleted", "{changes:?}");
    assert_eq!(authors(&changes[0]), ["agent:s"], "{changes:?}");
}

#[test]
fn attr2_an_editors_report_is_evidence() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let mut editor = world.client();
    // While an undeclared edit is open: the report tells them apart.
    let edit = agent.begin("a.txt", None).unwrap();
    user::write(&world.path("a.txt"), "user\n");
    editor.ok(
        "editor/didSave",
        json!({"path": "a.txt", "hash": sha256("user\n")}),
    );
    agent.sync();
    assert_eq!(agent.story("a.txt"), ["user editor"]);
    agent.commit(&edit, "a.txt", None);
    assert_eq!(agent.story("a.txt"), ["user editor"]);
    assert_eq!(agent.taken(), ["a.txt"]);
    // A late report amends.
    agent.read("a.txt");
    user::write(&world.path("a.txt"), "user 2\n");
    agent.sync();
    editor.ok(
        "editor/didSave",
        json!({"path": "a.txt", "hash": sha256("user 2\n")}),
    );
    assert_eq!(agent.story("a.txt"), ["user editor", "user editor"]);
    // Unsaved changes are said.
    editor.ok("editor/didOpen", json!({"path": "a.txt"}));
    editor.ok("editor/dirty", json!({"path": "a.txt", "dirty": true}));
    assert_eq!(agent.status("a.txt")["unsaved"], true);
    editor.ok("editor/dirty", json!({"path": "a.txt", "dirty": false}));
    assert_ne!(agent.status("a.txt")["unsaved"], true);
    editor.ok("editor/didClose", json!({"path": "a.txt"}));
}

#[test]
fn attr8_the_same_bytes_saved_again_leave_a_consumed_mark_alone() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    agent.mark("a.txt", None);
    user::write(&world.path("a.txt"), "agent\n");
    agent.sync();
    // An editor that loaded them, and is looked at before it closes.
    let path = world.path("a.txt");
    let mut editor = fs::OpenOptions::new().write(true).open(path).unwrap();
    editor.write_all(b"agent\n").unwrap();
    agent.sync();
    drop(editor);
    agent.sync();
    assert_eq!(agent.story("a.txt"), ["agent:s marked"]);
    assert!(agent.taken().is_empty());
}

#[test]
fn an_editor_that_is_gone_holds_no_unsaved_changes() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let (mut first, mut second) = (world.client(), world.client());
    for editor in [&mut first, &mut second] {
        editor.ok("editor/dirty", json!({"path": "a.txt", "dirty": true}));
    }
    // What one editor saves, another may still hold.
    first.ok("editor/dirty", json!({"path": "a.txt", "dirty": false}));
    assert_eq!(agent.status("a.txt")["unsaved"], true);
    first.ok("editor/didClose", json!({"path": "a.txt"}));
    assert_eq!(agent.status("a.txt")["unsaved"], true);
    // It crashed: nothing is left to be saved.
    drop(second);
    let end = Instant::now() + PATIENCE;
    while agent.status("a.txt")["unsaved"] == true {
        assert!(Instant::now() < end, "a gone editor's changes stay");
    }
}

#[test]
fn unsaved_files_of_one_editor_are_bounded() {
    let world = World::new();
    let mut editor = world.client();
    let dirty = |path: String| ("editor/dirty", json!({"path": path, "dirty": true}));
    let told: Vec<_> = (0..10_000).map(|n| dirty(format!("f{n}"))).collect();
    assert!(editor.many(&told).iter().all(Result::is_ok));
    let (method, one_more) = dirty("one-more".into());
    let error = editor.refused(method, one_more, "tooLarge");
    assert_eq!(error.data["limit"], 10_000);
    // One that is known already is no further one.
    let (method, known) = dirty("f7".into());
    editor.ok(method, known);
}

#[test]
fn attr14_a_late_declaration() {
    let world = World::new();
    let mut agent = world.session("s");
    // A path never tracked gets its first version so.
    world.file("new.txt", "agent\n");
    let marked = agent.mark("new.txt", Some("agent\n"));
    assert_eq!(marked["late"], true, "{marked}");
    assert_eq!(marked["file"]["state"], "fresh", "{marked}");
    assert_eq!(agent.story("new.txt").last().unwrap(), "agent:s declared");
    // What was delivered as the user's is not taken back; subscribers get
    // the correction.
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    user::write(&world.path("a.txt"), "agent\n");
    assert_eq!(agent.taken(), ["a.txt"]);
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["version"]}));
    let marked = agent.mark("a.txt", Some("agent\n"));
    assert_eq!(marked["late"], true, "{marked}");
    let event = subscriber.event();
    assert!(event["version"]["amends"].is_string(), "{event}");
    assert_eq!(event["version"]["author"]["session"], "s", "{event}");
    assert_eq!(agent.taken(), Vec::<String>::new());
    assert_eq!(agent.state("a.txt"), "fresh");
    // What the session has read is another author's for good.
    user::write(&world.path("a.txt"), "user\n");
    agent.read("a.txt");
    let marked = agent.mark("a.txt", Some("user\n"));
    assert_ne!(marked["late"], true, "{marked}");
    assert_eq!(agent.story("a.txt").last().unwrap(), "user unmarked");
}

#[test]
fn attr12_an_open_edit_stays_with_its_path() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let edit = agent.begin("a.txt", Some("agent\n")).unwrap();
    fs::rename(world.path("a.txt"), world.path("b.txt")).unwrap();
    pause(20);
    user::write(&world.path("a.txt"), "agent\n");
    let done = agent.commit(&edit, "a.txt", Some("agent\n"));
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(agent.state("a.txt"), "fresh");
}

#[test]
fn an_edit_of_many_files_is_committed_in_parts() {
    let world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    let files = json!([{"path": "a.txt"}, {"path": "b.txt"}]);
    let begun = agent.ok("edit/begin", json!({"files": files}));
    let edit = text(&begun, "edit");
    user::write(&world.path("a.txt"), "agent\n");
    assert_eq!(
        agent.commit(&edit, "a.txt", Some("agent\n"))["outcome"],
        "applied"
    );
    // The other path is still held.
    user::write(&world.path("b.txt"), "agent\n");
    let done = agent.client.ok("edit/commit", json!({"edit": edit}));
    assert_eq!(
        touchmark_tests::paths(done["files"].as_array().unwrap()),
        ["b.txt"]
    );
    assert_eq!(agent.story("b.txt"), [Way::Blind.story("s")]);
    agent
        .client
        .refused("edit/commit", json!({"edit": edit}), "unknownEdit");
    agent
        .client
        .refused("edit/commit", json!({"edit": "e999999"}), "unknownEdit");
}
