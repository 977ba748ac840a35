//! HOOK-5: what a notice says of a change, read back as the model reads it.

use std::fs;

use serde_json::json;
use touchmark_tests::hooks::Talk;
use touchmark_tests::mcp::Era;
use touchmark_tests::{Mcp, World, user};

use crate::hooks_gate::ten;

fn world() -> World {
    let world = World::new();
    world.file("a.txt", ten());
    world
}

fn claude<'a>(world: &'a World, session: &str) -> Talk<'a> {
    let talk = Talk::new(world, "claude", session);
    talk.start().nothing();
    talk.prompt("p", "x").nothing();
    talk
}

#[test]
fn hook5_few_changed_lines_are_shown_and_count_as_seen() {
    let world = world();
    let mut talk = claude(&world, "s");
    talk.read("a.txt").nothing();
    let changed = ten().replace("line 7", "line 7, mine");
    user::replace(&world.path("a.txt"), &changed);
    let told = talk.prompt("q", "go on").told();
    assert!(told.contains("now:\n7: line 7, mine\n)"), "{told}");
    assert!(told.ends_with("Others know you as \"claude-1\"."), "{told}");
    let status = json!({"session": "s", "paths": ["a.txt"]});
    let status = world.client().ok("file/status", status);
    assert_eq!(status["files"][0]["state"], "fresh", "{status}");
    // A tool with an older copy takes the lines back.
    let (_, heard) = talk.before_write("a.txt", &ten().replace("line 2", "two"));
    let reason = heard.denied();
    assert!(reason.contains("7: line 7, mine"), "{reason}");
    assert!(reason.contains("outside any agent"), "{reason}");
    let (_, heard) = talk.before_write("a.txt", &ten().replace("line 2", "two"));
    heard.nothing();
    // The label is told once, and many lines are only counted.
    talk.read("a.txt").nothing();
    user::replace(&world.path("a.txt"), &ten().replace("line", "row"));
    let told = talk.prompt("r", "go on").told();
    assert!(
        !told.contains("now:") && !told.contains("Others know"),
        "{told}"
    );
    assert!(told.contains("10 lines added, 10 lines removed"), "{told}");
}

#[test]
fn hook4_a_line_of_a_notice_allows_no_text_that_cannot_be_compared() {
    let world = World::new();
    let text = "a line of a long file\n".repeat(70_000);
    world.file("a.txt", &text);
    let mut talk = claude(&world, "s");
    talk.read("a.txt").nothing();
    user::replace(&world.path("a.txt"), &format!("{text}mine\n"));
    let told = talk.prompt("q", "go on").told();
    assert!(told.contains("now:\n70001: mine\n)"), "{told}");
    let (_, heard) = talk.before_write("a.txt", "short\n");
    assert!(heard.denied().contains("read it again before changing it"));
}

#[test]
fn hook5_a_secret_and_a_long_line_are_not_shown() {
    let world = World::new();
    world.file(".env", "A=1\n");
    world.file("long.txt", "a\n");
    let mut talk = claude(&world, "s");
    talk.read(".env");
    talk.read("long.txt");
    user::replace(&world.path(".env"), "A=2\n");
    user::replace(&world.path("long.txt"), &format!("{}\n", "x".repeat(300)));
    let told = talk.prompt("q", "go on").told();
    assert!(!told.contains("A=2") && !told.contains("now:"), "{told}");
}

#[test]
fn hook5_a_file_that_is_gone_is_deleted_or_moved() {
    let world = world();
    world.file("b.txt", "another\n");
    let mut talk = claude(&world, "s");
    talk.read("a.txt").nothing();
    talk.read("b.txt").nothing();
    fs::rename(world.path("a.txt"), world.path("c.txt")).unwrap();
    fs::remove_file(world.path("b.txt")).unwrap();
    let told = talk.prompt("q", "go on").told();
    assert!(
        told.contains("\"a.txt\" (moved to \"c.txt\" outside any agent"),
        "{told}"
    );
    assert!(
        told.contains("\"b.txt\" (deleted outside any agent"),
        "{told}"
    );
    // An edit has no file there, and a repeated edit would have none either.
    let (_, heard) = talk.before_edit("a.txt", "line 2", "two");
    let reason = heard.denied();
    assert!(
        reason.contains("moved to \"c.txt\"") && !reason.contains("Repeat"),
        "{reason}"
    );
}

#[test]
fn hook5_git_and_sub_agents_are_named() {
    let world = World::new();
    world.file("a.txt", ten());
    let git = |args: &[&str]| user::git(world.workspace(), args);
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["checkout", "-q", "-b", "feature"]);
    fs::write(world.path("a.txt"), ten().replace("line 7", "seven")).unwrap();
    git(&["commit", "-q", "-a", "-m", "two"]);
    let mut parent = claude(&world, "s");
    parent.read("a.txt").nothing();
    let mut child = Talk::new(&world, "claude", "s");
    child.voice = parent.voice.sub_agent("a7");
    child.read("a.txt").nothing();
    let told = format!("{:?}", parent.shell("git switch -q main"));
    assert!(
        told.contains("Your `git switch -q main` (branch \\\"feature\\\" to \\\"main\\\")")
            && told.contains("changed 1 file"),
        "{told}"
    );
    let told = child.say(&child.voice.batch_end().unwrap()).told();
    assert!(told.contains("git switch -q main"), "{told}");
    parent.read("a.txt");
    child.read("a.txt").nothing();
    child.edit("a.txt", "line 3", "line three").nothing();
    let told = parent.prompt("q", "go on").told();
    assert!(told.contains("by your sub-agent \""), "{told}");
}

#[test]
fn guard4_mcp_asks_once_before_a_removed_file_is_created_again() {
    let world = world();
    world.file("b.txt", "another\n");
    let mut mcp = Mcp::start(world.command(&["mcp"]), Era::Handshake);
    mcp.done("read_file", json!({"path": "a.txt"}));
    mcp.done("read_file", json!({"path": "b.txt"}));
    fs::rename(world.path("a.txt"), world.path("c.txt")).unwrap();
    fs::remove_file(world.path("b.txt")).unwrap();
    world.client().ok("sync", json!({}));
    for (path, went) in [
        ("a.txt", "was moved to \"c.txt\""),
        ("b.txt", "was deleted"),
    ] {
        let write = json!({"path": path, "text": "new\n"});
        let refused = mcp.call("write_file", write.clone());
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(went), "{text}");
        assert!(
            text.contains("repeat the request to create it again"),
            "{text}"
        );
        assert!(!world.path(path).exists());
        assert_eq!(mcp.done("write_file", write)["version"]["kind"], "created");
    }
    // A session that has never seen the file is not asked, nor is its remover.
    fs::remove_file(world.path("b.txt")).unwrap();
    let mut other = world.session("other");
    other.ok("file/write", json!({"path": "b.txt", "text": "x\n"}));
}
