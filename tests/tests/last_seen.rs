//! A session's copy is what it was last shown, or wrote last (SEEN-2, SEEN-7).

use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::{Session, Way, World, sha256, text, user};

const BEFORE: &str = "line 1\nline 2\nline 3\n";
const EDITED: &str = "line 1\nagent line\nline 3\n";

fn git(world: &World, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.email=a@b", "-c", "user.name=x"])
        .args(arguments)
        .current_dir(world.path(""))
        .output()
        .expect("git");
    assert!(done.status.success(), "git {arguments:?}: {done:?}");
}

/// Checks everything that follows from a session's edit that was taken back.
fn is_taken_back(agent: &mut Session, edit: Option<&str>) {
    assert_eq!(agent.status("a.txt")["state"], "stale");
    let taken = agent.ok("modified/take", json!({}));
    let changes = taken["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "{taken}");
    let change = &changes[0];
    assert_eq!(change["changedBy"], json!([{"kind": "user"}]), "{change}");
    let reverts = change["reverts"].as_array().expect("the edit taken back");
    match edit {
        Some(edit) => assert_eq!(reverts, &[json!(edit)]),
        None => assert_eq!(reverts.len(), 1, "{change}"),
    }
    agent.refused("edit/begin", json!({"files": [{"path": "a.txt"}]}), "stale");
    // Told once; a read makes it right again.
    assert_eq!(agent.ok("modified/take", json!({}))["changes"], json!([]));
    agent.read("a.txt");
    assert_eq!(agent.status("a.txt")["state"], "fresh");
}

/// Returns an agent that has read and edited a file in some way, and the edit's
/// id.
fn edited(world: &World, way: Option<Way>) -> (Session, Option<String>) {
    world.file("a.txt", BEFORE);
    let mut agent = world.session("agent");
    agent.read("a.txt");
    let edit = match way {
        Some(way) => {
            let edit = agent.announce(way, "a.txt", EDITED);
            world.file("a.txt", EDITED);
            agent.conclude(way, edit.clone(), "a.txt", EDITED);
            edit
        }
        None => {
            let edit = json!({"path": "a.txt", "oldString": "line 2", "newString": "agent line"});
            agent.ok("file/edit", edit);
            None
        }
    };
    assert_eq!(agent.status("a.txt")["state"], "fresh", "its own write");
    (agent, edit)
}

#[test]
fn an_edit_that_its_user_undoes_is_told_as_taken_back() {
    for way in [Way::Edit, Way::CommitHash, Way::Blind] {
        let world = World::new();
        let (mut agent, edit) = edited(&world, Some(way));
        world.file("a.txt", BEFORE);
        is_taken_back(&mut agent, edit.as_deref());
    }
    let world = World::new();
    let (mut agent, _) = edited(&world, None);
    world.file("a.txt", BEFORE);
    is_taken_back(&mut agent, None);
}

#[test]
fn an_edit_that_git_checks_out_of_is_told_as_taken_back() {
    let world = World::new();
    world.file("a.txt", BEFORE);
    git(&world, &["init", "-q"]);
    git(&world, &["add", "a.txt"]);
    git(&world, &["commit", "-qm", "m"]);
    let (mut agent, edit) = edited(&world, Some(Way::Edit));
    git(&world, &["checkout", "-q", "--", "a.txt"]);
    is_taken_back(&mut agent, edit.as_deref());
    // And a stash, which brings it back as well.
    let (mut agent, edit) = edited(&world, Some(Way::Edit));
    git(&world, &["stash", "-q"]);
    is_taken_back(&mut agent, edit.as_deref());
}

#[test]
fn a_notice_says_which_lines_were_taken_back() {
    let world = World::new();
    let mut client = world.client();
    let mut hook = |event: &str, fields: Value| {
        let mut input = json!({"hook_event_name": event, "session_id": "s", "cwd": world.path("")});
        for (name, value) in fields.as_object().expect("fields") {
            input[name] = value.clone();
        }
        let answer = client.ok("hook/event", json!({ "agent": "claude", "input": input }));
        text(&answer, "stdout")
    };
    world.file("a.txt", BEFORE);
    let path = world.path("a.txt");
    let read = json!({"tool_name": "Read", "tool_use_id": "1", "tool_input": {"file_path": path}});
    hook("PreToolUse", read.clone());
    hook("PostToolUse", read);
    let edit = json!({"tool_name": "Edit", "tool_use_id": "2", "tool_input":
        {"file_path": path, "old_string": "line 2", "new_string": "agent line"}});
    hook("PreToolUse", edit.clone());
    world.file("a.txt", EDITED);
    hook("PostToolUse", edit.clone());
    world.file("a.txt", BEFORE);
    let told = hook("UserPromptSubmit", json!({"prompt": "go on"}));
    assert!(told.contains("your edit"), "{told}");
    assert!(told.contains("was taken back outside any agent"), "{told}");
    // The same edit again, on top of what the agent has in its context, is
    // refused.
    let write = json!({"tool_name": "Write", "tool_use_id": "3", "tool_input":
        {"file_path": path, "content": EDITED}});
    let refused = hook("PreToolUse", write);
    assert!(refused.contains("deny"), "{refused}");
}

#[test]
fn partial_reads_refresh_their_lines_and_no_others() {
    let body = |version: u32| -> String {
        let rest = (2..50).map(|line| match version {
            0 => format!("old {line}\n"),
            _ => format!("new {version} {line}\n"),
        });
        std::iter::once(format!("line 1 of {version}\n"))
            .chain(rest)
            .collect()
    };
    let world = World::new();
    world.file("a.txt", body(0));
    let mut agent = world.session("agent");
    agent.read("a.txt");
    for version in 1..=40 {
        world.file("a.txt", body(version));
        let first = json!({"path": "a.txt", "range": {"start": 1, "end": 1}});
        agent.ok("file/read", first);
        let status = agent.status("a.txt");
        assert_eq!(status["state"], "stale", "after {version}: {status}");
        assert_eq!(status["staleRanges"], json!([{"start": 2, "end": 49}]));
    }
    let others = json!({"path": "a.txt", "range": {"start": 10, "end": 20}});
    let read = agent.ok("file/read", others);
    assert_ne!(read["verdict"], "repeat", "{read}");
    let rest = json!({"path": "a.txt", "range": {"start": 2, "end": 49}});
    agent.ok("file/read", rest);
    assert_eq!(agent.status("a.txt")["state"], "fresh");
}

#[test]
fn a_content_seen_before_another_is_stale_when_it_returns() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let mut agent = world.session("agent");
    agent.read("a.txt");
    world.file("a.txt", "two\n");
    agent.read("a.txt");
    world.file("a.txt", "one\n");
    assert_eq!(agent.status("a.txt")["state"], "stale");
    assert_eq!(agent.taken(), ["a.txt"]);
    // What it was shown last has never been anything else.
    world.file("a.txt", "two\n");
    assert_eq!(agent.status("a.txt")["state"], "fresh");
    assert!(agent.taken().is_empty());
}

#[test]
fn a_range_of_a_content_that_is_gone_is_no_more_than_that_range() {
    let lines = |word: &str, count: u32| -> String {
        (0..count).map(|line| format!("{word} {line}\n")).collect()
    };
    let world = World::new();
    let old = lines("old", 100);
    world.file("a.txt", &old);
    let mut agent = world.session("agent");
    agent.ok("file/mention", json!({"path": "a.txt"}));
    world.file("a.txt", lines("new", 50));
    agent.sync();
    let read = json!({"path": "a.txt", "hash": sha256(&old), "range": {"start": 1, "end": 50}});
    agent.ok("file/read", read);
    world.file("a.txt", &old);
    let range = json!({"path": "a.txt", "range": {"start": 60, "end": 70}});
    let shown = agent.ok("file/readText", range);
    assert_ne!(shown["verdict"], "repeat", "{shown}");
    assert!(shown["text"].is_string(), "{shown}");
}

#[test]
fn a_long_line_that_was_cut_was_not_shown() {
    let world = World::new();
    let long = "x".repeat(200_000) + "\n";
    world.file("big.json", &long);
    let mut client = world.client();
    let input = |event: &str, stdout: &str| {
        json!({"agent": "claude", "input": {"hook_event_name": event, "session_id": "s", "cwd": world.path(""),
            "tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "cat big.json"},
            "tool_response": {"stdout": stdout, "stderr": ""}}})
    };
    client.ok("hook/event", input("PreToolUse", ""));
    let cut = format!("{}... [truncated]", &long[..30_000]);
    client.ok("hook/event", input("PostToolUse", &cut));
    let read = json!({"session": "s", "path": "big.json"});
    let shown = client.ok("file/readText", read);
    assert_ne!(shown["verdict"], "repeat", "15 percent of it was shown");
}

/// Returns `count` different lines.
fn numbered(count: u32) -> Vec<String> {
    (1..=count).map(|line| format!("line {line}\n")).collect()
}

fn range(start: u32, end: u32) -> Value {
    json!({"path": "a.txt", "range": {"start": start, "end": end}})
}

#[test]
fn lines_above_what_was_read_move_it_and_do_not_make_it_stale() {
    let world = World::new();
    let mut lines = numbered(100);
    world.file("a.txt", lines.concat());
    let mut part = world.session("part");
    part.ok("file/read", range(40, 60));
    let mut whole = world.session("whole");
    whole.read("a.txt");
    // The user adds two lines at the top, and one at the end.
    lines.insert(0, "import a\nimport b\n".into());
    lines.push("the end\n".into());
    world.file("a.txt", lines.concat());
    let status = part.status("a.txt");
    assert_eq!(status["state"], "fresh", "{status}");
    assert_eq!(status["mayEdit"], true, "{status}");
    assert!(part.taken().is_empty(), "what it holds is there still");
    assert_eq!(whole.status("a.txt")["state"], "stale", "it knew the top");
    assert_eq!(whole.taken(), ["a.txt"]);
    // Its line numbers are others: lines that it asks for are handed over.
    let read = part.ok("file/readText", range(42, 62));
    assert_ne!(read["verdict"], "repeat", "{read}");
    assert!(
        read["text"]
            .as_str()
            .expect("text")
            .starts_with("line 40\n")
    );
    let edit = json!({"path": "a.txt", "oldString": "line 50\n", "newString": "fifty\n"});
    part.ok("file/edit", edit);
}

#[test]
fn a_change_between_lines_that_were_read_is_stale_until_it_is_shown() {
    let world = World::new();
    let mut lines = numbered(300);
    world.file("a.txt", lines.concat());
    let mut agent = world.session("agent");
    agent.ok("file/read", range(100, 200));
    lines[149] = "changed\n".into();
    lines.insert(9, "above\n".into());
    world.file("a.txt", lines.concat());
    assert_eq!(agent.status("a.txt")["state"], "stale");
    agent.refused("edit/begin", json!({"files": [{"path": "a.txt"}]}), "stale");
    // Some lines were read again, and not the one that has changed.
    agent.ok("file/read", range(120, 130));
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "stale", "{status}");
    let stale = json!([{"start": 151, "end": 151}]);
    assert_eq!(status["staleRanges"], stale, "counted as they are now");
    agent.ok("file/read", range(145, 155));
    assert_eq!(agent.status("a.txt")["state"], "fresh");
    // A line in the midst of what it holds.
    lines.insert(150, "between\n".into());
    world.file("a.txt", lines.concat());
    assert_eq!(agent.status("a.txt")["state"], "stale");
    assert_eq!(agent.taken(), ["a.txt"]);
}

#[test]
fn after_a_change_an_agent_needs_to_read_no_more_than_that() {
    let world = World::new();
    let mut lines = numbered(1_000);
    world.file("a.txt", lines.concat());
    let mut agent = world.session("agent");
    agent.read("a.txt");
    lines.insert(500, "between\n".into());
    lines.remove(700);
    world.file("a.txt", lines.concat());
    agent.ok("file/read", range(490, 510));
    let status = agent.status("a.txt");
    assert_eq!(status["staleRanges"], json!([{"start": 700, "end": 701}]));
    agent.ok("file/read", range(695, 705));
    assert_eq!(agent.status("a.txt")["state"], "fresh");
    // All of it counts as seen, the first line and the last as well.
    lines.push("one more\n".into());
    world.file("a.txt", lines.concat());
    assert_eq!(agent.status("a.txt")["state"], "stale");
    // What it has seen outlives the daemon.
    world.file("a.txt", lines[..1_000].concat());
    agent.ok("file/read", range(999, 1_000));
    assert_eq!(agent.status("a.txt")["state"], "fresh");
}

#[test]
fn without_a_text_to_compare_with_a_changed_file_is_stale_as_a_whole() {
    let world = World::new();
    let mut lines = numbered(100);
    world.file(".env", lines.concat());
    let mut agent = world.session("agent");
    agent.ok(
        "file/read",
        json!({"path": ".env", "range": {"start": 40, "end": 60}}),
    );
    lines.insert(0, "SECRET=1\n".into());
    world.file(".env", lines.concat());
    assert_eq!(
        agent.status(".env")["state"],
        "stale",
        "secrets are not kept"
    );
}

/// A person takes back a part of an agent's edit, in addition to other changes.
#[test]
fn lines_of_an_edit_that_its_user_takes_back_are_told() {
    let world = World::new();
    let base = "a\nb\nc\nd\ne\nf\n";
    let written = "a\nB\nc\nd\nE1\nE2\nf\n";
    let back = |line: u32, to: u32| json!([{"start": line, "end": to}]);
    for (saved, lines) in [
        ("mine\na\nb\nc\nd\nE1\nE2\nf\n", back(2, 2)),
        ("a\nB\nc\nd\ne\nf\n", back(5, 6)),
        ("a\nB and more\nc\nd\nE1\nE2\nf\n", Value::Null),
    ] {
        world.file("a.txt", base);
        let mut agent = world.session("s");
        agent.read("a.txt");
        agent.edit(Way::Edit, "a.txt", written, |path| {
            user::write(path, written)
        });
        world.file("a.txt", saved);
        let told = agent.take();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0]["reverts"], Value::Null, "{told:?}");
        assert_eq!(told[0]["revertedLines"], lines, "{told:?}");
        world
            .session("s")
            .ok("session/close", json!({"forget": true}));
    }
}
