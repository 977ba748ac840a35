//! "File Read Tracker": what was read is not put into the context again. The
//! first nine tests have the names of that document's tests.

use serde_json::{Value, json};
use touchmark_tests::{Session, World, authors, paths, text, user};

/// The message for a repeated read, as the document has it.
const REPEAT: &str = "[File previously read: a.txt. Content unchanged since last read.]";

fn read_text(agent: &mut Session, path: &str) -> Value {
    agent.ok("file/readText", json!({"path": path}))
}

fn count(agent: &mut Session, path: &str) -> Value {
    agent.status(path)["readCount"].clone()
}

fn world_of(config: &str) -> World {
    let mut world = World::asleep();
    world.configure(config);
    world.start();
    world
}

#[test]
fn has_been_read_returns_false_when_not_read() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "unread", "{status}");
    assert_eq!(status["readCount"], 0, "{status}");
    assert_eq!(status["readAt"], Value::Null, "{status}");
}

#[test]
fn has_been_read_returns_true_after_track_read() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.ok("file/read", json!({"path": "a.txt"}));
    let status = agent.status("a.txt");
    assert_eq!(status["state"], "fresh", "{status}");
    assert!(status["readAt"].is_u64(), "{status}");
    // Another conversation has read nothing.
    assert_eq!(world.session("t").state("a.txt"), "unread");
}

#[test]
fn track_read_increments_count() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    for expected in 1..=4 {
        let read = agent.ok("file/read", json!({"path": "a.txt"}));
        assert_eq!(read["readCount"], expected, "{read}");
    }
    assert_eq!(count(&mut agent, "a.txt"), 4);
}

#[test]
fn invalidate_read_resets_state() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    read_text(&mut agent, "a.txt");
    read_text(&mut agent, "a.txt");
    agent.ok("file/invalidate", json!({"path": "a.txt"}));
    assert_eq!(count(&mut agent, "a.txt"), 0);
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["verdict"], "first", "{read}");
    assert_eq!(read["text"], "one\n", "{read}");
    assert_eq!(count(&mut agent, "a.txt"), 1);
    // All files at once.
    world.file("b.txt", "two\n");
    read_text(&mut agent, "b.txt");
    agent.ok("file/invalidate", json!({}));
    for path in ["a.txt", "b.txt"] {
        assert_eq!(read_text(&mut agent, path)["verdict"], "first", "{path}");
    }
}

#[test]
fn get_all_read_files_returns_tracked_paths() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["b.txt", "a.txt", "d/c.txt", "unread.txt"] {
        world.file(path, "one\n");
    }
    for path in ["b.txt", "a.txt", "d/c.txt", "b.txt"] {
        agent.read(path);
    }
    let listed = agent.ok("file/list", json!({}));
    let files = listed["files"].as_array().unwrap();
    assert_eq!(paths(files), ["a.txt", "b.txt", "d/c.txt"]);
    let counts: Vec<&Value> = files.iter().map(|file| &file["readCount"]).collect();
    assert_eq!(counts, [1, 2, 1]);
}

#[test]
fn case_insensitive_path_comparison() {
    let world = world_of("case = \"insensitive\"\n");
    let mut agent = world.session("s");
    world.file("src/App.cs", "one\n");
    assert_eq!(read_text(&mut agent, "src/App.cs")["verdict"], "first");
    let again = read_text(&mut agent, "SRC/app.CS");
    assert_eq!(again["verdict"], "repeat", "{again}");
    assert_eq!(
        again["message"],
        "[File previously read: src/App.cs. Content unchanged since last read.]"
    );
    let listed = agent.ok("file/list", json!({}));
    assert_eq!(paths(listed["files"].as_array().unwrap()), ["src/App.cs"]);
    user::write(&world.path("src/App.cs"), "two\n");
    assert_eq!(agent.state("Src/APP.cs"), "stale");
    agent.ok("file/invalidate", json!({"path": "SRC/APP.CS"}));
    assert_eq!(read_text(&mut agent, "src/app.cs")["text"], "two\n");
}

#[test]
fn read_file_returns_full_content_on_first_read() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\ntwo\n");
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["verdict"], "first", "{read}");
    assert_eq!(read["text"], "one\ntwo\n", "{read}");
    assert_eq!(read["lineCount"], 2, "{read}");
    assert_eq!(read["message"], Value::Null, "{read}");
    agent.refused("file/readText", json!({"path": "none.txt"}), "notFound");
}

#[test]
fn read_file_returns_short_message_on_second_read() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n".repeat(1000));
    read_text(&mut agent, "a.txt");
    for _ in 0..3 {
        let read = read_text(&mut agent, "./a.txt");
        assert_eq!(read["verdict"], "repeat", "{read}");
        assert_eq!(read.get("text"), None, "{read}");
        assert_eq!(read["message"], REPEAT);
    }
    // Who has it must be able to get it all the same; that saves nothing.
    let stats = |agent: &mut Session| agent.client.ok("stats", json!({}));
    let before = stats(&mut agent);
    assert_eq!(before["repeats"], 3, "{before}");
    assert_eq!(before["bytesNotSent"], 3 * 4000, "{before}");
    let forced = agent.ok("file/readText", json!({"path": "a.txt", "force": true}));
    assert_eq!(forced["text"], "one\n".repeat(1000));
    assert_eq!(stats(&mut agent), before);
}

#[test]
fn read_file_returns_full_content_after_write_invalidation() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    read_text(&mut agent, "a.txt");
    agent.ok("file/write", json!({"path": "a.txt", "text": "two\n"}));
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["text"], "two\n", "{read}");
    assert_eq!(read_text(&mut agent, "a.txt")["verdict"], "repeat");
    // A write of the agent's own, marked.
    agent.mark("a.txt", Some("three\n"));
    user::write(&world.path("a.txt"), "three\n");
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["text"], "three\n", "{read}");
    // An edit through the daemon.
    let edit = json!({"path": "a.txt", "oldString": "three", "newString": "four"});
    agent.ok("file/edit", edit);
    assert_eq!(read_text(&mut agent, "a.txt")["text"], "four\n");
    assert_eq!(agent.taken(), Vec::<String>::new());
}

#[test]
fn a_change_by_somebody_else_is_read_in_full_and_said() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    read_text(&mut agent, "a.txt");
    user::replace(&world.path("a.txt"), "two\n");
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["verdict"], "changed", "{read}");
    assert_eq!(read["text"], "two\n", "{read}");
    assert_eq!(
        read["message"],
        "[File changed since last read: a.txt. Changed outside any agent.]"
    );
    assert_eq!(read_text(&mut agent, "a.txt")["message"], REPEAT);
    // Another agent's write is another author's, too.
    let mut other = world.session("t");
    other.read("a.txt");
    other.ok("file/write", json!({"path": "a.txt", "text": "three\n"}));
    let read = agent.ok("file/read", json!({"path": "a.txt"}));
    assert_eq!(read["verdict"], "changed", "{read}");
    assert_eq!(authors(&read), ["agent:t"], "{read}");
    // Changed and changed back: what is in the context is what is there.
    user::write(&world.path("a.txt"), "four\n");
    user::write(&world.path("a.txt"), "three\n");
    assert_eq!(read_text(&mut agent, "a.txt")["verdict"], "repeat");
}

#[test]
fn a_repeat_of_lines_counts_their_bytes() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "é1\né2\né3\né4\n");
    let lines = |from: u32, to: u32| json!({"path": "a.txt", "range": {"start": from, "end": to}});
    let read = agent.ok("file/readText", lines(1, 2));
    assert_eq!(read["text"], "é1\né2\n", "{read}");
    let other = agent.ok("file/readText", lines(3, 4));
    assert_eq!(other["verdict"], "extends", "{other}");
    assert_eq!(other["text"], "é3\né4\n", "{other}");
    let inside = agent.ok("file/readText", lines(2, 3));
    assert_eq!(inside["verdict"], "repeat", "{inside}");
    assert_eq!(inside.get("text"), None, "{inside}");
    // The whole was read in parts.
    let whole = read_text(&mut agent, "a.txt");
    assert_eq!(whole["verdict"], "repeat", "{whole}");
    let whole = agent.ok("file/readText", lines(1, 4));
    assert_eq!(whole["verdict"], "repeat", "{whole}");
    let stats = agent.ok("stats", json!({}));
    assert_eq!(stats["repeats"], 3, "{stats}");
    assert_eq!(stats["bytesNotSent"], 8 + 16 + 16, "{stats}");
    // Of lines read elsewhere, only what was handed over is known.
    let mut known = lines(1, 1);
    agent.ok("file/read", known.clone());
    known["text"] = json!("é1\n");
    agent.ok("file/read", known);
    let stats = agent.ok("stats", json!({}));
    assert_eq!(stats["repeats"], 5, "{stats}");
    assert_eq!(stats["bytesNotSent"], 8 + 16 + 16 + 4, "{stats}");
    // A mention is no read.
    agent.ok("file/mention", json!({"path": "a.txt"}));
    assert_eq!(agent.ok("stats", json!({})), stats);
    // No other user saved anything.
    let none = world.session("t").ok("stats", json!({}));
    assert_eq!(none["repeats"], 0, "{none}");
}

#[test]
fn what_left_the_context_is_read_in_full() {
    let world = World::new();
    let mut agent = world.session("s");
    for path in ["a.txt", "b.txt"] {
        world.file(path, "1\n2\n3\n4\n");
        read_text(&mut agent, path);
    }
    // A stub stands in place of two lines.
    let items = json!({"items": [{"path": "a.txt", "range": {"start": 2, "end": 3}}]});
    let evicted = agent.ok("session/truncated", items);
    assert_eq!(evicted["evicted"], 1, "{evicted}");
    let lines = |from: u32, to: u32| json!({"path": "a.txt", "range": {"start": from, "end": to}});
    let kept = agent.ok("file/readText", lines(1, 1));
    assert_eq!(kept["verdict"], "repeat", "{kept}");
    let cut = agent.ok("file/readText", lines(3, 3));
    assert_eq!(cut["verdict"], "extends", "{cut}");
    assert_eq!(cut["text"], "3\n", "{cut}");
    let whole = read_text(&mut agent, "a.txt");
    assert_eq!(whole["text"], "1\n2\n3\n4\n", "{whole}");
    // A compaction leaves only what the summary quotes.
    agent.ok("session/compacted", json!({"keep": ["b.txt"]}));
    assert_eq!(read_text(&mut agent, "b.txt")["verdict"], "repeat");
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["verdict"], "first", "{read}");
    assert_eq!(read["text"], "1\n2\n3\n4\n", "{read}");
    // It was seen all the same: it may be edited (SEEN-3).
    agent.ok("session/compacted", json!({}));
    assert_eq!(agent.status("a.txt")["mayEdit"], true);
}

#[test]
fn without_deduplication_every_read_is_full() {
    let mut world = world_of("[dedup]\nenabled = false\n");
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    for expected in 1..=3 {
        let read = read_text(&mut agent, "a.txt");
        assert_eq!(read["verdict"], "first", "{read}");
        assert_eq!(read["text"], "one\n", "{read}");
        assert_eq!(count(&mut agent, "a.txt"), expected);
    }
    assert_eq!(agent.ok("stats", json!({}))["repeats"], 0);
    // What is out of date is still known.
    user::write(&world.path("a.txt"), "two\n");
    assert_eq!(agent.state("a.txt"), "stale");
    // Switched on again, the reads of before count.
    world.configure("");
    read_text(&mut agent, "a.txt");
    world.restart();
    let mut agent = world.session("s");
    assert_eq!(read_text(&mut agent, "a.txt")["verdict"], "repeat");
}

#[test]
fn a_read_that_is_not_tracked_leaves_nothing() {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    for _ in 0..2 {
        let read = agent.ok("file/readText", json!({"path": "a.txt", "track": false}));
        assert_eq!(text(&read, "text"), "one\n");
    }
    assert_eq!(agent.state("a.txt"), "unread");
    let listed = agent.ok("file/list", json!({}));
    assert_eq!(listed["files"], json!([]));
    assert_eq!(read_text(&mut agent, "a.txt")["verdict"], "first");
    // Nor does it make a repeat of what comes after it.
    let read = agent.ok("file/readText", json!({"path": "a.txt", "track": false}));
    assert_eq!(text(&read, "text"), "one\n");
    assert_eq!(count(&mut agent, "a.txt"), 1);
}

#[test]
fn counts_and_reads_survive_a_kill() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let mut agent = world.session("s");
    read_text(&mut agent, "a.txt");
    read_text(&mut agent, "a.txt");
    world.restart();
    let mut agent = world.session("s");
    let read = read_text(&mut agent, "a.txt");
    assert_eq!(read["verdict"], "repeat", "{read}");
    assert_eq!(count(&mut agent, "a.txt"), 3);
    let stats = agent.ok("stats", json!({}));
    assert_eq!(
        (&stats["repeats"], &stats["bytesNotSent"]),
        (&json!(2), &json!(8))
    );
}
