//! "File-Aware Retrieval": what a session accessed recently, and which results
//! may leave its context. The first two tests have the names of that document's
//! tests.

use serde_json::{Value, json};
use touchmark_tests::{Session, World, text, user};

fn read(agent: &mut Session, path: &str, step: u64) {
    agent.ok("file/read", json!({"path": path, "step": step}));
}

fn item(id: &str, tool: &str, path: Option<&str>, step: u64) -> Value {
    json!({"id": id, "tool": tool, "path": path, "step": step})
}

fn rank(agent: &mut Session, step: u64, max_age: u64, items: Vec<Value>) -> Vec<Value> {
    let ranked = agent.ok(
        "retention/rank",
        json!({"step": step, "maxAge": max_age, "items": items}),
    );
    ranked["items"].as_array().unwrap().clone()
}

fn rank_one(agent: &mut Session, step: u64, max_age: u64, item: Value) -> Value {
    rank(agent, step, max_age, vec![item]).remove(0)
}

fn recent(agent: &mut Session, step: u64, max_age: u64) -> Vec<Value> {
    let listed = agent.ok("file/recent", json!({"step": step, "maxAge": max_age}));
    listed["files"].as_array().unwrap().clone()
}

/// Returns the names in the answer's order.
fn names(files: &[Value]) -> Vec<String> {
    files.iter().map(|file| text(file, "path")).collect()
}

#[test]
fn preserves_recently_modified_files() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("app/config.ts", "old\n");
    read(&mut agent, "app/config.ts", 1);
    agent.ok(
        "file/write",
        json!({"path": "app/config.ts", "text": "new\n", "step": 1}),
    );
    // However long ago: the session wrote it.
    for step in [2, 11, 1_000_000] {
        let item = item("m1", "read_file", Some("app/config.ts"), 1);
        let ranked = rank_one(&mut agent, step, 5, item);
        assert_eq!(
            ranked,
            json!({"id": "m1", "priority": "never", "rank": 4, "action": "keep"})
        );
    }
    // What another session wrote is nothing to this one.
    let mut other = world.session("t");
    read(&mut other, "app/config.ts", 1);
    let item = item("m1", "read_file", Some("app/config.ts"), 1);
    assert_eq!(rank_one(&mut other, 11, 5, item)["action"], "stub");
}

#[test]
fn truncates_stale_file_reads() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("app/config.ts", "1\n2\n3\n");
    read(&mut agent, "app/config.ts", 1);
    let old = item("m1", "read_file", Some("app/config.ts"), 1);
    let kept = rank_one(&mut agent, 6, 5, old.clone());
    assert_eq!(kept["action"], "keep", "{kept}");
    let cut = rank_one(&mut agent, 11, 5, old);
    assert_eq!(
        cut,
        json!({"id": "m1", "priority": "read", "rank": 2, "action": "stub",
            "text": "[File: app/config.ts (3 lines) - content truncated, use read_file to re-read]",
            "hint": "[File content truncated. To see current content, call read_file again.\n\
                Path: app/config.ts\nLast read: 10 steps ago\nLines: 3]"})
    );
}

#[test]
fn a_file_accessed_elsewhere_is_still_at_work() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.ts", "1\n");
    read(&mut agent, "a.ts", 1);
    read(&mut agent, "a.ts", 9);
    let ranked = rank_one(&mut agent, 11, 5, item("m1", "read_file", Some("a.ts"), 1));
    assert_eq!(ranked["action"], "keep", "{ranked}");
}

#[test]
fn four_priorities_and_the_rest() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["a", "b", "c", "wrote"] {
        world.file(path, "1\n");
        read(&mut agent, path, 1);
    }
    agent.ok("file/write", json!({"path": "wrote", "text": "2\n"}));
    agent.ok("file/mention", json!({"path": "c", "step": 1}));
    let mut mentioned = item("mentioned", "read_file", Some("b"), 1);
    mentioned["mentioned"] = json!(true);
    let items = vec![
        item("edit", "edit_file", Some("a"), 1),
        item("create", "create_file", Some("new"), 1),
        item("write", "write_file", None, 1),
        item("read of a write", "read_file", Some("wrote"), 1),
        mentioned,
        item("by a mention", "read_file", Some("c"), 1),
        item("read", "read_file", Some("a"), 1),
        item("other", "list_directory", None, 1),
        item("search", "search_files", None, 1),
        item("bash", "execute_bash", None, 1),
        item("grep", "grep", None, 1),
        item("short", "bash", None, 1),
    ];
    let priorities: Vec<(String, u64)> = rank(&mut agent, 2, 5, items)
        .iter()
        .map(|item| (text(item, "priority"), item["rank"].as_u64().unwrap()))
        .collect();
    let never = ("never".to_owned(), 4);
    let mentioned = ("mentioned".to_owned(), 3);
    let rerunnable = ("rerunnable".to_owned(), 0);
    assert_eq!(
        priorities,
        [
            never.clone(),
            never.clone(),
            never.clone(),
            never,
            mentioned.clone(),
            mentioned,
            ("read".to_owned(), 2),
            ("other".to_owned(), 1),
            rerunnable.clone(),
            rerunnable.clone(),
            rerunnable.clone(),
            rerunnable,
        ]
    );
}

#[test]
fn what_can_be_run_again_goes_first_and_what_was_mentioned_last() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["a", "b"] {
        world.file(path, "1\n");
        read(&mut agent, path, 1);
    }
    let mut mentioned = item("mentioned", "read_file", Some("b"), 1);
    mentioned["mentioned"] = json!(true);
    let items = vec![
        item("grep", "grep", None, 1),
        item("other", "list_directory", None, 1),
        item("read", "read_file", Some("a"), 1),
        mentioned,
    ];
    let mut kept = |step: u64| -> Vec<String> {
        rank(&mut agent, step, 4, items.clone())
            .iter()
            .filter(|item| item["action"] == "keep")
            .map(|item| text(item, "id"))
            .collect()
    };
    assert_eq!(kept(3), ["grep", "other", "read", "mentioned"]);
    assert_eq!(kept(4), ["other", "read", "mentioned"]);
    assert_eq!(kept(5), ["other", "read", "mentioned"]);
    assert_eq!(kept(6), ["mentioned"]);
    assert_eq!(kept(9), ["mentioned"]);
    assert_eq!(kept(10), Vec::<String>::new());
    let cut = rank_one(&mut agent, 10, 4, item("grep", "grep", None, 1));
    assert_eq!(cut["text"], "[Output truncated, run grep again if needed]");
    assert_eq!(cut.get("hint"), None, "{cut}");
}

#[test]
fn a_copy_that_is_out_of_date_is_worth_nothing() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n2\n");
    read(&mut agent, "a", 1);
    let mut whole = item("m1", "read_file", Some("a"), 1);
    assert_eq!(rank_one(&mut agent, 2, 5, whole.clone())["action"], "keep");
    user::write(&world.path("a"), "changed\n");
    let cut = rank_one(&mut agent, 2, 5, whole.clone());
    assert_eq!(cut["action"], "stub", "{cut}");
    whole["lines"] = json!(7);
    assert_eq!(
        rank_one(&mut agent, 2, 5, whole.clone())["text"],
        "[File: a (7 lines) - content truncated, use read_file to re-read]"
    );
    std::fs::remove_file(world.path("a")).unwrap();
    assert_eq!(rank_one(&mut agent, 2, 5, whole)["action"], "stub");
    // A stub is one line for each thing said, whatever the names are (SEC-4).
    world.file("x\ny", "1\n");
    let cut = rank_one(&mut agent, 99, 5, item("m2", "read_file", Some("x\ny"), 1));
    assert_eq!(text(&cut, "text").lines().count(), 1, "{cut}");
    assert_eq!(text(&cut, "hint").lines().count(), 4, "{cut}");
    let outside = item("m3", "read_file", Some("../x"), 1);
    agent.refused(
        "retention/rank",
        json!({"step": 2, "maxAge": 5, "items": [outside]}),
        "outsideWorkspace",
    );
}

#[test]
fn recent_files_the_newest_first() {
    let world = World::new();
    let mut agent = world.session("s");
    for (step, path) in [(1, "a"), (4, "b"), (2, "c"), (9, "d")] {
        world.file(path, "1\n2\n");
        read(&mut agent, path, step);
    }
    world.file("stepless", "1\n");
    agent.read("stepless");
    assert_eq!(names(&recent(&mut agent, 10, 6)), ["d", "b"]);
    assert_eq!(names(&recent(&mut agent, 10, 9)), ["d", "b", "c", "a"]);
    assert_eq!(names(&recent(&mut agent, 10, 0)), Vec::<String>::new());
    // Exactly as old as is allowed is recent.
    assert_eq!(names(&recent(&mut agent, 10, 1)), ["d"]);
    // A write is an access; without a step of its own it keeps the last.
    agent.ok(
        "file/write",
        json!({"path": "a", "text": "3\n", "step": 10}),
    );
    let files = recent(&mut agent, 10, 6);
    assert_eq!(names(&files), ["a", "d", "b"]);
    assert_eq!(files[0]["wasModified"], true, "{files:?}");
    assert_eq!(files[0]["lastStep"], 10, "{files:?}");
    assert_eq!(files[0]["lineCount"], 1, "{files:?}");
    assert_eq!(files[1]["wasModified"], false, "{files:?}");
    assert_eq!(files[1]["lineCount"], 2, "{files:?}");
    assert_eq!(files[1]["preview"], "1\n2\n", "{files:?}");
    assert!(files[1]["lastAccessTime"].is_u64(), "{files:?}");
    agent.read("d");
    assert_eq!(names(&recent(&mut agent, 10, 1)), ["a", "d"]);
    // In portions.
    let mut told = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let params = json!({"step": 10, "maxAge": 9, "limit": 2, "cursor": cursor});
        let part = agent.ok("file/recent", params);
        told.extend(names(part["files"].as_array().unwrap()));
        cursor = part["more"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(told, ["a", "d", "b", "c"]);
    let mine = world
        .session("t")
        .ok("file/recent", json!({"step": 10, "maxAge": 9}));
    assert_eq!(mine["files"], json!([]));
}

#[test]
fn age_is_counted_in_steps_and_says_nothing_of_content() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a", "1\n");
    let mut age = |path: &str, step: u64, max_age: u64| {
        agent.ok(
            "file/isStale",
            json!({"path": path, "step": step, "maxAge": max_age}),
        )
    };
    // Never accessed.
    assert_eq!(age("a", 5, 100), json!({"stale": true, "age": null}));
    world
        .session("s")
        .ok("file/read", json!({"path": "a", "step": 2}));
    assert_eq!(age("a", 5, 3), json!({"stale": false, "age": 3}));
    assert_eq!(age("./a", 6, 3), json!({"stale": true, "age": 4}));
    user::write(&world.path("a"), "2\n");
    assert_eq!(age("a", 5, 3), json!({"stale": false, "age": 3}));
    // Steps that run backwards are no age.
    assert_eq!(age("a", 1, 3), json!({"stale": false, "age": 0}));
}

#[test]
fn previews_are_the_first_200_characters_and_never_of_secrets() {
    let world = World::new();
    let mut agent = world.session("s");
    let crabs = "🦀é".repeat(300);
    let files: [(&str, &[u8]); 6] = [
        ("crabs", crabs.as_bytes()),
        ("short", b"one\ntwo"),
        ("empty", b""),
        ("bytes", b"a\xffb"),
        (".env", b"TOKEN=secret\n"),
        ("id_rsa", b"KEY\n"),
    ];
    for (path, content) in files {
        world.file(path, content);
        read(&mut agent, path, 1);
    }
    // A link of another name leads to a secret.
    std::os::unix::fs::symlink(world.path(".env"), world.path("innocent")).unwrap();
    read(&mut agent, "innocent", 1);
    let expected = |path: &str| -> String {
        match path {
            "crabs" => crabs.chars().take(200).collect(),
            "short" => "one\ntwo".into(),
            "bytes" => "a\u{fffd}b".into(),
            _ => String::new(),
        }
    };
    let listed = agent.ok("file/list", json!({}));
    let recent = recent(&mut agent, 1, 1);
    for files in [listed["files"].as_array().unwrap(), &recent] {
        // The link and what it leads to are one file (FILE-1).
        assert_eq!(files.len(), 6);
        for file in files {
            let path = text(file, "path");
            assert_eq!(text(file, "preview"), expected(&path), "{path}");
        }
    }
    // The preview is of what the session saw, not of what came after.
    user::write(&world.path("short"), "other\n");
    let listed = agent.ok("file/list", json!({"all": true}));
    let short: Vec<&Value> = listed["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|file| file["path"] == "short")
        .collect();
    assert_eq!(short[0]["recordSource"], "user_edited", "{short:?}");
    assert_eq!(short[0]["recordState"], "active", "{short:?}");
    assert_eq!(short[1]["recordSource"], "read_tool", "{short:?}");
    assert_eq!(short[1]["recordState"], "stale", "{short:?}");
    assert_eq!(short[1]["preview"], "one\ntwo", "{short:?}");
}
