//! SEEN: what sessions have read of files; compaction, ranges, renames.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, authors, sha256, text, user};

fn lines(from: u32, to: u32) -> Value {
    json!({"start": from, "end": to})
}

fn ten() -> String {
    (1..=10).map(|line| format!("line {line}\n")).collect()
}

fn verdict(agent: &mut Session, path: &str, range: Option<Value>) -> String {
    let read = agent.ok("file/read", json!({"path": path, "range": range}));
    text(&read, "verdict")
}

#[test]
fn seen1_a_read_records_the_clients_hash_or_the_daemons_own() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    let read = agent.ok("file/read", json!({"path": "a.txt", "step": 3}));
    assert_eq!(read["verdict"], "first", "{read}");
    assert_eq!(read["hash"], sha256(ten()), "{read}");
    assert_eq!(read["lineCount"], 10, "{read}");
    assert_eq!(read["readCount"], 1, "{read}");
    let read = agent.ok("file/read", json!({"path": "a.txt"}));
    assert_eq!(read["verdict"], "repeat", "{read}");
    assert_eq!(
        read["message"],
        "[File previously read: a.txt. Content unchanged since last read.]"
    );
    // A hash that the file no longer has, of a file not read otherwise.
    world.file("b.txt", ten());
    agent.ok(
        "file/read",
        json!({"path": "b.txt", "hash": sha256("older\n")}),
    );
    assert_eq!(agent.state("b.txt"), "stale");
    agent.refused("file/read", json!({"path": "none.txt"}), "notFound");
    agent.ok(
        "file/read",
        json!({"path": "none.txt", "hash": sha256("x")}),
    );
    assert_eq!(agent.state("none.txt"), "deleted");
}

#[test]
fn seen1_a_mention_starts_tracking_and_is_no_read() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    let state = agent.ok("file/mention", json!({"path": "a.txt"}));
    assert_eq!(state["state"], "unread", "{state}");
    assert_eq!(state["mayEdit"], false, "{state}");
    assert_eq!(agent.taken(), Vec::<String>::new());
    user::write(&world.path("a.txt"), "two\n");
    // MOD-1: unread and no longer its baseline.
    assert_eq!(agent.state("a.txt"), "unread");
    assert_eq!(agent.taken(), ["a.txt"]);
    // With a hash it is a read.
    agent.ok(
        "file/mention",
        json!({"path": "a.txt", "hash": sha256("two\n")}),
    );
    assert_eq!(agent.state("a.txt"), "fresh");
}

#[test]
fn seen2_states_are_of_the_moment() {
    let world = World::new();
    let mut agent = world.session("s");
    assert_eq!(agent.state("never.txt"), "unread");
    world.file("a.txt", "one\n");
    assert_eq!(agent.state("a.txt"), "unread");
    agent.read("a.txt");
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "fresh", "{status}");
    assert_eq!(status["resident"], true, "{status}");
    assert_eq!(status["lineCount"], 1, "{status}");
    assert_eq!(status["size"], 4, "{status}");
    user::write(&world.path("a.txt"), "two\n");
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "stale", "{status}");
    assert_eq!(status["mayEdit"], false, "{status}");
    assert_eq!(status["seenHash"], sha256("one\n"), "{status}");
    assert_eq!(authors(&status), ["user"], "{status}");
    fs::remove_file(world.path("a.txt")).unwrap();
    assert_eq!(agent.state("a.txt"), "deleted");
    user::write(&world.path("a.txt"), "one\n");
    assert_eq!(agent.state("a.txt"), "fresh");
    // All files that the session has seen, by state.
    world.file("b.txt", "one\n");
    agent.read("b.txt");
    user::write(&world.path("b.txt"), "two\n");
    let stale = agent.ok("file/status", json!({"state": ["stale"]}));
    assert_eq!(
        touchmark_tests::paths(stale["files"].as_array().unwrap()),
        ["b.txt"]
    );
}

#[test]
fn seen2_a_partial_read_of_new_content_leaves_the_old_copy_stale() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    agent.read("a.txt");
    let newer = ten().replace("line 9", "line nine");
    user::write(&world.path("a.txt"), &newer);
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(1, 5))), "changed");
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "stale", "{status}");
    // SEEN-8: the other lines are as they were.
    assert_eq!(status["staleRanges"], json!([lines(9, 9)]), "{status}");
    // SEEN-3: the current content has been seen in part.
    assert_eq!(status["mayEdit"], true, "{status}");
    verdict(&mut agent, "a.txt", Some(lines(9, 9)));
    assert_eq!(agent.state("a.txt"), "fresh");
}

#[test]
fn seen3_compaction_and_truncation_end_residence_and_not_the_right_to_edit() {
    let world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt", "c.txt"] {
        world.file(name, ten());
        agent.read(name);
    }
    assert_eq!(verdict(&mut agent, "a.txt", None), "repeat");
    let evicted = agent.ok("session/compacted", json!({"keep": ["b.txt"]}));
    assert_eq!(evicted["evicted"], 2, "{evicted}");
    for (name, resident) in [("a.txt", false), ("b.txt", true), ("c.txt", false)] {
        let status = agent.status(name);
        assert_eq!(status["state"], "fresh", "{status}");
        assert_eq!(status["mayEdit"], true, "{status}");
        assert_eq!(status["resident"], resident, "{status}");
    }
    assert_ne!(verdict(&mut agent, "a.txt", None), "repeat");
    assert_eq!(verdict(&mut agent, "a.txt", None), "repeat");
    assert_eq!(verdict(&mut agent, "b.txt", None), "repeat");
    // Part of a file is cut from the context: only the rest is a repeat.
    agent.ok(
        "session/truncated",
        json!({"items": [{"path": "b.txt", "range": lines(1, 5)}]}),
    );
    assert_eq!(verdict(&mut agent, "b.txt", Some(lines(6, 10))), "repeat");
    assert_ne!(verdict(&mut agent, "b.txt", Some(lines(1, 5))), "repeat");
}

#[test]
fn seen4_ranges_decide_what_is_a_repeat() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(1, 3))), "first");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(1, 3))), "repeat");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(2, 3))), "repeat");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(2, 5))), "extends");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(8, 10))), "extends");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(1, 5))), "repeat");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(5, 8))), "extends");
    assert_eq!(verdict(&mut agent, "a.txt", None), "repeat");
    user::write(&world.path("a.txt"), "new\n");
    assert_eq!(verdict(&mut agent, "a.txt", Some(lines(1, 1))), "changed");
    agent.refused(
        "file/read",
        json!({"path": "a.txt", "range": {"start": 0, "end": 1}}),
        "invalidParams",
    );
    agent.refused(
        "file/read",
        json!({"path": "a.txt", "range": {"start": 5, "end": 4}}),
        "invalidParams",
    );
}

#[test]
fn seen4_the_next_read_after_an_own_edit_is_full() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    agent.read("a.txt");
    agent.edit(touchmark_tests::Way::Edit, "a.txt", "new\n", |path| {
        user::write(path, "new\n");
    });
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "fresh", "{status}");
    assert_eq!(status["resident"], false, "{status}");
    let read = agent.ok("file/readText", json!({"path": "a.txt"}));
    assert_ne!(read["verdict"], "repeat", "{read}");
    assert_eq!(read["text"], "new\n", "{read}");
    assert_eq!(verdict(&mut agent, "a.txt", None), "repeat");
}

#[test]
fn read_text_gives_the_text_once_and_in_parts() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    let read = agent.ok(
        "file/readText",
        json!({"path": "a.txt", "range": lines(2, 3)}),
    );
    assert_eq!(read["text"], "line 2\nline 3\n", "{read}");
    assert_eq!(read["range"], lines(2, 3), "{read}");
    assert_eq!(read["encoding"], "utf8", "{read}");
    let read = agent.ok(
        "file/readText",
        json!({"path": "a.txt", "range": lines(2, 3)}),
    );
    assert_eq!(read["verdict"], "repeat", "{read}");
    assert!(read["text"].is_null(), "{read}");
    let read = agent.ok(
        "file/readText",
        json!({"path": "a.txt", "range": lines(2, 3), "force": true}),
    );
    assert_eq!(read["text"], "line 2\nline 3\n", "{read}");
    // Untracked: neither recorded nor told of.
    world.file("b.txt", "b\n");
    agent.ok("file/readText", json!({"path": "b.txt", "track": false}));
    assert_eq!(agent.state("b.txt"), "unread");
    // Bytes that are no text.
    world.file("raw", [0xff, 0xfe, 0x00]);
    let read = agent.ok("file/readText", json!({"path": "raw"}));
    assert_eq!(read["encoding"], "base64", "{read}");
    assert_eq!(read["text"], "//4A", "{read}");
    // More than one answer holds.
    let long: String = (0..100_000).map(|n| format!("{n:0>99}\n")).collect();
    world.file("long.txt", &long);
    let mut found = String::new();
    let mut start = 1_u64;
    loop {
        let range = json!({"start": start, "end": 100_000});
        let read = agent.ok("file/readText", json!({"path": "long.txt", "range": range}));
        let part = text(&read, "text");
        assert!(part.len() <= 4 << 20, "{}", part.len());
        found.push_str(&part);
        if read["truncated"] == false {
            break;
        }
        start = read["range"]["end"].as_u64().unwrap() + 1;
    }
    assert_eq!(sha256(found), sha256(long));
    agent.refused("file/readText", json!({"path": "none"}), "notFound");
}

#[test]
fn invalidate_forgets_the_read_and_keeps_the_right() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", ten());
    agent.read("a.txt");
    agent.ok("file/invalidate", json!({"path": "a.txt"}));
    let status = agent.status("a.txt");
    assert_eq!(status["mayEdit"], true, "{status}");
    assert_eq!(status["readCount"], 0, "{status}");
    let edit = agent.begin("a.txt", None).unwrap();
    agent.abort(&edit);
    let read = agent.ok("file/readText", json!({"path": "a.txt"}));
    assert_eq!(read["verdict"], "first", "{read}");
    assert_eq!(read["text"], ten(), "{read}");
}

#[test]
fn seen5_a_sub_agent_shares_the_log_and_not_the_reads() {
    let world = World::new();
    let mut parent = world.session("parent");
    let mut child = world.session("child");
    child.ok("session/open", json!({"parent": "parent"}));
    world.file("a.txt", "one\n");
    parent.read("a.txt");
    assert_eq!(child.state("a.txt"), "unread");
    child.read("a.txt");
    child.edit(touchmark_tests::Way::Edit, "a.txt", "two\n", |path| {
        user::write(path, "two\n");
    });
    let changes = parent.take();
    assert_eq!(authors(&changes[0]), ["agent:child"]);
    assert_eq!(child.taken(), Vec::<String>::new());
}

#[test]
fn attr12_a_rename_copies_what_is_known() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("d/a.txt", "one\n");
    agent.read("d/a.txt");
    fs::rename(world.path("d/a.txt"), world.path("d/b.txt")).unwrap();
    assert_eq!(agent.state("d/b.txt"), "fresh");
    assert_eq!(agent.state("d/a.txt"), "deleted");
    let history = agent.history("d/b.txt");
    assert_eq!(history[0]["kind"], "renamed", "{history:?}");
    assert_eq!(history[0]["from"], "d/a.txt", "{history:?}");
    assert_eq!(agent.taken(), ["d/a.txt"]);
    // Of an ancestor: every tracked file below.
    world.file("d/sub/c.txt", "c\n");
    agent.read("d/sub/c.txt");
    fs::rename(world.path("d"), world.path("e")).unwrap();
    for name in ["e/b.txt", "e/sub/c.txt"] {
        assert_eq!(
            agent.state(name),
            "fresh",
            "{name} {:#?}",
            agent.history(name)
        );
    }
    for name in ["d/b.txt", "d/sub/c.txt"] {
        assert_eq!(agent.state(name), "deleted", "{name}");
    }
    agent.take();
    // Watched under the new name.
    user::write(&world.path("e/sub/c.txt"), "changed\n");
    assert_eq!(agent.taken(), ["e/sub/c.txt"]);
    // Onto an existing name: modified there, deleted at the source.
    world.file("e/x.txt", "x\n");
    world.file("e/y.txt", "y\n");
    agent.read("e/x.txt");
    agent.read("e/y.txt");
    fs::rename(world.path("e/x.txt"), world.path("e/y.txt")).unwrap();
    let changes = agent.take();
    let kinds: Vec<(String, String)> = changes
        .iter()
        .map(|change| (text(change, "path"), text(change, "kind")))
        .collect();
    assert!(
        kinds.contains(&("e/x.txt".into(), "deleted".into())),
        "{kinds:?}"
    );
    assert!(
        kinds.contains(&("e/y.txt".into(), "modified".into())),
        "{kinds:?}"
    );
    assert_eq!(kinds.len(), 2, "{kinds:?}");
}

#[test]
fn loss4_a_file_that_cannot_be_read_is_unreadable() {
    // Root reads everything, so the daemon would; said plainly.
    if rustix::process::geteuid().is_root() {
        eprintln!("root can read every file: only the refusals are tested here");
    } else {
        let world = World::new();
        let mut agent = world.session("s");
        world.file("a.txt", "one\n");
        agent.read("a.txt");
        fs::set_permissions(world.path("a.txt"), fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(agent.state("a.txt"), "unreadable");
    }
    let world = World::new();
    let mut agent = world.session("s");
    fs::create_dir(world.path("dir")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path("device")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.runtime().join("x")).unwrap();
    fs::rename(world.runtime().join("x"), world.path("socket")).ok();
    for (name, kind) in [("dir", "directory"), ("fifo", "fifo")] {
        for method in ["file/read", "file/readText"] {
            let error = agent.refused(method, json!({"path": name}), "notAFile");
            assert_eq!(error.data["fileType"], kind, "{}", error.data);
        }
    }
    agent.refused("file/read", json!({"path": "device"}), "outsideWorkspace");
    // A file that is read becomes a directory, a FIFO.
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    fs::remove_file(world.path("a.txt")).unwrap();
    fs::create_dir(world.path("a.txt")).unwrap();
    assert_ne!(agent.state("a.txt"), "fresh");
    assert_eq!(agent.taken(), ["a.txt"]);
}

#[test]
fn file_list_and_untrack() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    world.file("b.txt", "one\n");
    agent.ok("file/read", json!({"path": "a.txt", "step": 1}));
    agent.ok("file/read", json!({"path": "a.txt", "step": 2}));
    agent.ok("file/mention", json!({"path": "b.txt", "step": 3}));
    user::write(&world.path("b.txt"), "two\n");
    let list = agent.ok("file/list", json!({}));
    let files = list["files"].as_array().unwrap();
    let row = |path: &str| files.iter().find(|row| row["path"] == path).unwrap();
    let a = row("a.txt");
    assert_eq!(a["recordSource"], "read_tool", "{a}");
    assert_eq!(a["recordState"], "active", "{a}");
    assert_eq!(a["lastStep"], 2, "{a}");
    assert_eq!(a["readCount"], 2, "{a}");
    assert_eq!(a["preview"], "one\n", "{a}");
    assert_eq!(
        row("b.txt")["recordSource"],
        "user_edited",
        "{}",
        row("b.txt")
    );
    assert_eq!(files.len(), 2, "one active row for each path: {list}");
    agent.ok("file/untrack", json!({"path": "b.txt"}));
    assert_eq!(agent.taken(), Vec::<String>::new());
    let list = agent.ok("file/list", json!({}));
    assert_eq!(list["files"].as_array().map(Vec::len), Some(1), "{list}");
}
