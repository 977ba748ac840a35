//! Codex's hooks, with the real binary and daemon.

use std::fs;

use serde_json::json;
use touchmark_tests::hooks::{Talk, play};
use touchmark_tests::{World, user};

#[test]
fn a_whole_session() {
    play::whole_session("codex");
}

/// Returns the event before or after a patch of three files in one call.
fn patch(talk: &Talk<'_>, after: bool) -> serde_json::Value {
    let command = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: new.txt\n+new\n*** Delete File: gone.txt\n*** End Patch\n";
    let name = if after { "PostToolUse" } else { "PreToolUse" };
    let mut event = talk.voice.event(
        name,
        json!({"tool_name": "apply_patch", "tool_use_id": "c1",
            "tool_input": {"command": command}}),
    );
    if after {
        event["tool_response"] = json!("Success.");
    }
    event
}

#[test]
fn a_patch_is_one_edit_of_all_its_files() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    world.file("gone.txt", "x\n");
    let mut talk = Talk::new(&world, "codex", "s");
    talk.start().nothing();
    let reason = talk.say(&patch(&talk, false)).denied();
    assert!(
        reason.starts_with("\"gone.txt\" exists (1 line"),
        "{reason}"
    );
    talk.read("a.txt").nothing();
    talk.read("gone.txt").nothing();
    talk.say(&patch(&talk, false)).nothing();
    fs::write(world.path("a.txt"), "one\n2\n").unwrap();
    fs::write(world.path("new.txt"), "new\n").unwrap();
    fs::remove_file(world.path("gone.txt")).unwrap();
    talk.say(&patch(&talk, true)).nothing();
    let mut session = world.session("s");
    for path in ["a.txt", "new.txt", "gone.txt"] {
        assert_eq!(session.story(path), ["agent:s declared"], "{path}");
    }
}

#[test]
fn a_patch_in_a_shell_command_is_a_patch() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    world.file("gone.txt", "x\n");
    let mut talk = Talk::new(&world, "codex", "s");
    let mut session = world.session("s");
    talk.start().nothing();
    world.file("mine.txt", "x\n");
    talk.read("mine.txt").nothing();
    let in_shell = |talk: &Talk<'_>, after: bool| {
        let mut event = patch(talk, after);
        let patch = event["tool_input"]["command"].as_str().unwrap().to_owned();
        event["tool_name"] = json!("Bash");
        event["tool_input"]["command"] =
            json!(format!("bash -lc \"apply_patch <<'EOF'\n{patch}EOF\n\""));
        event
    };
    let reason = talk.say(&in_shell(&talk, false)).denied();
    assert!(
        reason.starts_with("\"gone.txt\" exists (1 line"),
        "{reason}"
    );
    talk.read("a.txt").nothing();
    talk.read("gone.txt").nothing();
    talk.say(&in_shell(&talk, false)).nothing();
    fs::write(world.path("a.txt"), "one\n2\n").unwrap();
    fs::write(world.path("new.txt"), "new\n").unwrap();
    fs::remove_file(world.path("gone.txt")).unwrap();
    // A window would take this for the session's as well.
    user::write(&world.path("mine.txt"), "mine\n");
    session.sync();
    talk.say(&in_shell(&talk, true)).told();
    assert_eq!(session.story("mine.txt"), ["user unmarked"]);
    for path in ["a.txt", "new.txt", "gone.txt"] {
        assert_eq!(session.story(path), ["agent:s declared"], "{path}");
    }
}

#[test]
fn a_patch_that_failed_half_way_claims_only_what_it_did() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    world.file("gone.txt", "x\n");
    let mut talk = Talk::new(&world, "codex", "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    talk.read("gone.txt").nothing();
    talk.say(&patch(&talk, false)).nothing();
    fs::write(world.path("a.txt"), "one\n2\n").unwrap();
    // Codex tells of a failed tool by the same event.
    talk.say(&patch(&talk, true)).nothing();
    let mut session = world.session("s");
    assert_eq!(session.story("a.txt"), ["agent:s declared"]);
    assert_eq!(session.story("gone.txt"), Vec::<String>::new());
    assert_eq!(session.state("gone.txt"), "fresh");
    user::write(&world.path("new.txt"), "mine\n");
    session.sync();
    assert_eq!(session.story("new.txt"), ["user unmarked"]);
}

#[test]
fn an_interrupt_ends_what_is_open() {
    let world = World::new();
    world.file("a.txt", "one\ntwo\n");
    let mut talk = Talk::new(&world, "codex", "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    let (_, heard) = talk.before_edit("a.txt", "one", "1");
    heard.nothing();
    talk.say(&talk.voice.event("Interrupt", json!({})))
        .nothing();
    assert_eq!(world.client().ok("status", json!({}))["openEdits"], 0);
}
