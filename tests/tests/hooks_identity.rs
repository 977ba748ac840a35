//! HOOK-9: an agent's hooks and its MCP tool calls belong to one session.

use serde_json::{Value, json};
use touchmark_tests::hooks::Voice;
use touchmark_tests::hooks::agent::Agent;
use touchmark_tests::mcp::RESULT;
use touchmark_tests::{World, user};

const TEXT: &str = "one\ntwo\nthree\n";

/// Returns a file's state for a session.
fn state(world: &World, session: &str, path: &str) -> String {
    let ask = json!({"session": session, "paths": [path]});
    let files = world.client().ok("file/status", ask);
    files["files"][0]["state"].as_str().unwrap().to_owned()
}

fn author(world: &World, path: &str) -> Value {
    let history = world.client().ok("file/history", json!({"path": path}));
    history["versions"][0]["author"]["session"].clone()
}

#[test]
fn hook9_what_is_read_natively_is_read_in_mcp_and_the_other_way_round() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut agent = Agent::claude(&world, "s");
    agent.begin();
    agent.read("a.txt");
    assert!(agent.edit_by_mcp("a.txt", "two", "2"), "it was read");
    assert_eq!(author(&world, "a.txt"), "s");
    // An own edit is of no other session: nothing is told, nothing denied.
    agent.say(&agent.voice.prompt("q", "go on")).nothing();
    let edit = agent.voice.before_edit("e", "a.txt", "three", "3");
    agent.say(&edit).nothing();
    user::write(&world.path("a.txt"), "one\n2\n3\n");
    let after = agent.voice.after_edit("e", "a.txt", "three", "3");
    agent.say(&after);
    let changed = agent.mcp.call("changed_files", json!({}));
    assert_eq!(changed["_meta"][RESULT]["changes"], json!([]), "{changed}");
    agent.read_by_mcp("b.txt");
    assert_eq!(state(&world, "s", "b.txt"), "fresh");
    let write = agent.voice.before_write("w", "b.txt", "other\n");
    agent.say(&write).nothing();
    let sessions = world.client().ok("session/list", json!({}));
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    agent.end();
}

#[test]
fn hook9_what_mcp_did_before_a_hook_was_heard_becomes_the_hooks() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut agent = Agent::claude(&world, "s");
    agent.read_by_mcp("a.txt");
    agent.read_by_mcp("b.txt");
    assert!(agent.edit_by_mcp("a.txt", "two", "2"));
    agent.begin();
    user::write(&world.path("b.txt"), "the user's\n");
    agent.read_by_mcp("a.txt");
    assert_eq!(state(&world, "s", "a.txt"), "fresh");
    assert_eq!(state(&world, "s", "b.txt"), "stale");
    let told = agent.say(&agent.voice.prompt("q", "go on")).told();
    assert!(told.contains("b.txt") && !told.contains("a.txt"), "{told}");
    let write = agent.voice.before_write("w", "a.txt", "other\n");
    agent.say(&write).nothing();
    agent.end();
}

#[test]
fn hook9_two_agents_in_one_terminal_are_two() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let (mut one, mut other) = (Agent::claude(&world, "one"), Agent::claude(&world, "other"));
    one.begin();
    other.begin();
    one.read("a.txt");
    other.read("a.txt");
    other.read_by_mcp("b.txt");
    assert_eq!(state(&world, "one", "b.txt"), "unread");
    assert!(other.edit_by_mcp("a.txt", "two", "2"));
    assert_eq!(author(&world, "a.txt"), "other");
    let told = one.say(&one.voice.prompt("q", "go on")).told();
    assert!(
        told.contains("a.txt") && told.contains("agent session"),
        "{told}"
    );
    one.end();
    other.end();
}

#[test]
fn hook9_another_program_below_an_agent_is_not_that_agent() {
    let world = World::new();
    world.file("a.txt", TEXT);
    let mut agent = Agent::new(&world, "claude", "codex-mcp-client", "s");
    agent.begin();
    agent.read_by_mcp("a.txt");
    assert_eq!(state(&world, "s", "a.txt"), "unread");
    agent.end();
}

#[test]
fn hook9_a_sub_agents_call_is_the_sub_agents() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut agent = Agent::claude(&world, "s");
    agent.begin();
    let child = agent.voice.sub_agent("child");
    let announce = |voice: &Voice, id: &str, path: &str| {
        let call = json!({"tool_name": "mcp__touchmark__read_file", "tool_use_id": id,
            "tool_input": {"path": path}});
        voice.event("PreToolUse", call)
    };
    agent.say(&announce(&child, "t1", "a.txt")).nothing();
    agent.say(&announce(&agent.voice, "t2", "b.txt")).nothing();
    // In another order than they were announced.
    assert!(agent.call(Some("t2"), "read_file", json!({"path": "b.txt"})));
    assert!(agent.call(Some("t1"), "read_file", json!({"path": "a.txt"})));
    assert_eq!(state(&world, "s/child", "a.txt"), "fresh");
    assert_eq!(state(&world, "s/child", "b.txt"), "unread");
    assert_eq!(state(&world, "s", "a.txt"), "unread");
    assert_eq!(state(&world, "s", "b.txt"), "fresh");
    agent.end();
}

#[test]
fn hook9_a_new_conversation_in_the_same_process_has_read_nothing() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut agent = Agent::claude(&world, "s");
    agent.begin();
    agent.read_by_mcp("a.txt");
    agent.say(&agent.voice.end()).nothing();
    agent.voice = Voice::new("claude", "cleared", world.workspace());
    agent.say(&agent.voice.start("clear")).nothing();
    agent.say(&agent.voice.prompt("p", "go on")).nothing();
    agent.read_by_mcp("b.txt");
    assert_eq!(state(&world, "cleared", "a.txt"), "unread");
    assert_eq!(state(&world, "cleared", "b.txt"), "fresh");
    assert_eq!(state(&world, "s", "b.txt"), "unread");
    agent.end();
}

#[test]
fn hook9_copilot_cli_names_mcp_tools_with_a_hyphen() {
    let world = World::new();
    world.file("a.txt", TEXT);
    world.file("b.txt", TEXT);
    let mut agent = Agent::new(&world, "copilot-cli", "copilot-cli", "s");
    agent.begin();
    // The hook announces the call of a sub-agent as of any other, by its own
    // name for the tool.
    let announce = json!({"tool_name": "touchmark-read_file", "tool_input": {"path": "b.txt"}});
    agent
        .say(&agent.voice.event("PreToolUse", announce))
        .nothing();
    agent.read_by_mcp("b.txt");
    agent.read("a.txt");
    assert!(agent.edit_by_mcp("a.txt", "two", "2"), "it was read");
    assert_eq!(author(&world, "a.txt"), "s");
    agent
        .say(&agent.voice.before_edit("e", "a.txt", "three", "3"))
        .nothing();
    let sessions = world.client().ok("session/list", json!({}));
    assert_eq!(
        sessions["sessions"].as_array().unwrap().len(),
        1,
        "{sessions}"
    );
    agent.end();
}
