//! "Tool Enhancements": files are read before they are edited, times and sizes
//! prove nothing, quotation marks are matched. Other tests of `file/edit` are
//! in `guard.rs`, and GUARD-4 for marks in `edits.rs`.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use touchmark_tests::{Session, World, authors, sha256, text, user};

fn snapshot(agent: &mut Session, path: &str) -> Value {
    agent.client.ok("file/snapshot", json!({"path": path}))
}

/// Returns `modified`, and whether time, size and content have changed.
fn detect(agent: &mut Session, snapshot: &Value) -> (bool, [bool; 3]) {
    let found = agent
        .client
        .ok("file/detect", json!({"snapshot": snapshot}));
    let changes = &found["changes"];
    let changed = ["mtimeChanged", "sizeChanged", "contentChanged"]
        .map(|name| changes[name].as_bool().unwrap_or_else(|| panic!("{found}")));
    (found["modified"].as_bool().unwrap(), changed)
}

fn set_time(world: &World, path: &str, time: SystemTime) {
    let file = File::options().write(true).open(world.path(path)).unwrap();
    file.set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn time_of(world: &World, path: &str) -> SystemTime {
    fs::metadata(world.path(path)).unwrap().modified().unwrap()
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "oldString": old, "newString": new})
}

#[test]
fn a_file_must_be_read_before_it_is_edited() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "one\n");
    let refused = agent.refused("file/edit", edit("a", "one", "two"), "notRead");
    assert_eq!(refused.data["path"], "a", "{refused}");
    // Another session's read is not this one's.
    world.session("t").read("a");
    agent.refused("file/edit", edit("a", "one", "two"), "notRead");
    assert_eq!(agent.state("a"), "unread");
    let read = agent.read("a");
    let status = agent.status("a");
    assert_eq!(status["mayEdit"], true, "{status}");
    assert_eq!(status["seenHash"], read["hash"], "{status}");
    assert!(status["readAt"].is_u64(), "{status}");
    let done = agent.ok("file/edit", edit("a", "one", "two"));
    assert_eq!(done["matched"], "exact", "{done}");
    // Cleared: the session has nothing on record any more.
    agent.ok("session/close", json!({"forget": true}));
    let mut agent = world.session("s2");
    agent.refused("file/edit", edit("a", "two", "three"), "notRead");
    let refusals = agent.client.ok("stats", json!({}));
    assert_eq!(refusals["notReadRefused"], 1, "{refusals}");
    let refusals = agent.ok("stats", json!({}));
    assert_eq!(refusals["notReadRefused"], 1, "{refusals}");
    assert_eq!(refusals["staleRefused"], 0, "{refusals}");
}

#[test]
fn a_file_modified_externally_must_be_read_again() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "one\n");
    agent.read("a");
    // Its time is as it was: that proves nothing.
    let before = time_of(&world, "a");
    user::write(&world.path("a"), "two\n");
    set_time(&world, "a", before);
    let stale = agent.refused("file/edit", edit("a", "two", "three"), "stale");
    assert_eq!(authors(&stale.data), ["user"], "{stale}");
    assert_eq!(stale.data["seenHash"], sha256("one\n"), "{stale}");
    assert_eq!(stale.data["hash"], sha256("two\n"), "{stale}");
    let stats = agent.ok("stats", json!({}));
    assert_eq!(stats["staleRefused"], 1, "{stats}");
    agent.read("a");
    agent.ok("file/edit", edit("a", "two", "three"));
    // Its time is another: nor does that.
    agent.read("a");
    set_time(&world, "a", before + Duration::from_secs(3600));
    assert_eq!(agent.state("a"), "fresh");
    agent.ok("file/edit", edit("a", "three", "four"));
    assert_eq!(fs::read_to_string(world.path("a")).unwrap(), "four\n");
}

#[test]
fn a_snapshot_tells_time_size_and_content_apart() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "one\n");
    set_time(
        &world,
        "a",
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
    );
    let taken = snapshot(&mut agent, "./a");
    assert_eq!(
        taken,
        json!({"path": "a", "mtimeMs": 1500, "size": 4, "hash": sha256("one\n")})
    );
    assert_eq!(detect(&mut agent, &taken), (false, [false; 3]));
    // Touched.
    set_time(&world, "a", SystemTime::UNIX_EPOCH);
    assert_eq!(detect(&mut agent, &taken), (false, [true, false, false]));
    // Other content of the same size and time.
    user::write(&world.path("a"), "two\n");
    set_time(
        &world,
        "a",
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
    );
    assert_eq!(detect(&mut agent, &taken), (true, [false, false, true]));
    user::write(&world.path("a"), "three\n");
    assert_eq!(detect(&mut agent, &taken), (true, [true; 3]));
    // Another file of the same content.
    user::replace(&world.path("a"), "one\n");
    assert_eq!(detect(&mut agent, &taken), (false, [true, false, false]));
    fs::remove_file(world.path("a")).unwrap();
    assert_eq!(detect(&mut agent, &taken), (true, [true; 3]));
    // Neither is a read.
    assert_eq!(agent.state("a"), "unread");
    // The same for a file that is watched.
    world.file("b", "one\n");
    agent.read("b");
    let taken = snapshot(&mut agent, "b");
    let time = time_of(&world, "b");
    user::overwrite(&world.path("b"), "two\n");
    set_time(&world, "b", time);
    assert_eq!(detect(&mut agent, &taken), (true, [false, false, true]));
}

#[test]
fn a_snapshot_of_no_file_and_of_what_is_none() {
    let world = World::new();
    let mut agent = world.session("s");
    let none = snapshot(&mut agent, "a");
    assert_eq!(
        none,
        json!({"path": "a", "mtimeMs": 0, "size": 0, "hash": null})
    );
    assert_eq!(detect(&mut agent, &none), (false, [false; 3]));
    world.file("a", "");
    let (modified, changed) = detect(&mut agent, &none);
    assert_eq!((modified, changed[1..].to_vec()), (true, vec![false, true]));
    fs::create_dir(world.path("d")).unwrap();
    let client = &mut agent.client;
    client.refused("file/snapshot", json!({"path": "d"}), "notAFile");
    client.refused("file/snapshot", json!({"path": "../d"}), "outsideWorkspace");
    // A name that is not UTF-8 comes back as it was told.
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"n\xff");
    fs::write(world.path(name), "1\n").unwrap();
    let uri = format!("file://{}/n%FF", world.workspace().display());
    let taken = client.ok("file/snapshot", json!({"uri": uri}));
    assert_eq!(taken["uri"], uri, "{taken}");
    assert_eq!(detect(&mut agent, &taken), (false, [false; 3]));
    fs::write(world.path(name), "2\n").unwrap();
    assert!(detect(&mut agent, &taken).0);
}

#[test]
fn every_quotation_mark_has_its_straight_one() {
    let world = World::new();
    let mut client = world.client();
    for (smart, straight) in [
        ("\u{2018}", "'"),
        ("\u{2019}", "'"),
        ("\u{201c}", "\""),
        ("\u{201d}", "\""),
        ("\u{201a}", "'"),
        ("\u{201e}", "\""),
    ] {
        let normal = client.ok("quotes/normalize", json!({"text": format!("a{smart}b")}));
        assert_eq!(normal["text"], format!("a{straight}b"));
    }
    let same = client.ok("quotes/normalize", json!({"text": "`a´ \"b\" 'c' «d»"}));
    assert_eq!(same["text"], "`a´ \"b\" 'c' «d»");
}

#[test]
fn a_fuzzy_match_speaks_of_the_original_text() {
    let world = World::new();
    let mut client = world.client();
    let mut find = |needle: &str, haystack: &str| {
        client.ok(
            "quotes/match",
            json!({"needle": needle, "haystack": haystack}),
        )
    };
    assert_eq!(
        find("\"Hello\"", "“Hello”"),
        json!({"matched": true, "position": 0, "originalMatch": "“Hello”",
            "normalizedMatch": "\"Hello\""})
    );
    // Positions count characters, whatever their bytes.
    let found = find("'x'", "🦀é “y” ‘x’");
    assert_eq!(found["position"], 7, "{found}");
    assert_eq!(found["originalMatch"], "‘x’", "{found}");
    // What is there exactly wins over what comes first.
    let found = find("\"a\"", "“a” and \"a\"");
    assert_eq!(found["position"], 8, "{found}");
    assert_eq!(found["originalMatch"], "\"a\"", "{found}");
    assert_eq!(find("\"b\"", "“a”"), Value::Null);
}

#[test]
fn an_edit_by_quotation_marks_is_done_once_and_keeps_the_files_own() {
    let world = World::new();
    let mut agent = world.session("s");
    // The document's own way replaces what it put in a second time.
    world.file("a", "say(“old”); say(\"other\");\n");
    agent.read("a");
    let done = agent.ok("file/edit", edit("a", "\"old\"", "\"old\" + \"old\""));
    assert_eq!(done["matched"], "quotes", "{done}");
    assert_eq!(done["replacements"], 1, "{done}");
    assert_eq!(
        fs::read_to_string(world.path("a")).unwrap(),
        "say(“old” + “old”); say(\"other\");\n"
    );
    // The same text twice by quotation marks alone is no answer to "which".
    world.file("b", "“x” ”x“\n");
    agent.read("b");
    let several = agent.refused("file/edit", edit("b", "\"x\"", "y"), "noMatch");
    assert_eq!(several.data["matches"], 2, "{several}");
    let mut all = edit("b", "\"x\"", "y");
    all["replaceAll"] = json!(true);
    let done = agent.ok("file/edit", all);
    assert_eq!(done["replacements"], 2, "{done}");
    assert_eq!(fs::read_to_string(world.path("b")).unwrap(), "y y\n");
    // After characters of several bytes.
    world.file("c", "🦀é ‘old’ 🦀\n");
    agent.read("c");
    agent.ok("file/edit", edit("c", "'old'", "'new'"));
    assert_eq!(
        fs::read_to_string(world.path("c")).unwrap(),
        "🦀é ‘new’ 🦀\n"
    );
    assert_eq!(agent.state("c"), "fresh");
    assert_eq!(
        text(&agent.ok("file/readText", json!({"path": "c"})), "text"),
        "🦀é ‘new’ 🦀\n"
    );
}
