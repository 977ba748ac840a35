//! SCOPE-9: what a person does to an untracked file that a command wrote.

use std::fs;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, text};

use crate::carried::{command, on_disk, sh};

/// A world whose looks may take as long as a slow build needs.
fn world() -> World {
    let mut world = World::asleep();
    world.set_env("TOUCHMARK_TEST_SCOPE_MS", "20000");
    world.start();
    world
}

/// Returns a file's log, oldest first: what happened, by whom, and how that is
/// known.
fn log(session: &mut Session, path: &str) -> Vec<String> {
    let log = session.client.ok("file/log", json!({"paths": [path]}));
    let entries = log["entries"].as_array().unwrap().iter().rev();
    entries
        .map(|entry| {
            let version = &entry["version"];
            let by = text(&version["author"], "kind");
            format!(
                "{} {by} {}",
                text(version, "kind"),
                text(version, "evidence")
            )
        })
        .collect()
}

/// Returns a file's lines with the authors that blame names.
fn blame(session: &mut Session, path: &str) -> Vec<String> {
    let blame = session.client.ok("file/blame", json!({"path": path}));
    let line = |line: &Value| format!("{}: {}", text(&line["author"], "kind"), text(line, "text"));
    blame["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

/// Adds a line at the end of a file.
fn types(world: &World, path: &str, line: &str) {
    let before = on_disk(world, path).unwrap_or_default();
    fs::write(world.path(path), before + line + "\n").unwrap();
}

const MADE: &str = "created agent command";
const USERS: &str = "modified user unmarked";

#[test]
fn a_users_edit_is_in_the_log_and_in_blame_and_stays_at_an_undo() {
    let world = world();
    let mut agent = world.session("s");
    command(&world, &mut agent, "echo 'line 1' > made; ln -s made link");
    types(&world, "made", "my line");
    assert_eq!(log(&mut agent, "made"), [MADE, USERS]);
    // Once, and nothing without a change.
    assert_eq!(log(&mut agent, "made"), [MADE, USERS]);
    assert_eq!(log(&mut agent, "link"), [MADE]);
    types(&world, "made", "my second");
    let lines = ["agent: line 1", "user: my line", "user: my second"];
    assert_eq!(blame(&mut agent, "made"), lines);
    types(&world, "made", "my third");
    let log = agent.client.ok("file/log", json!({"paths": ["made"]}));
    let clock = &log["entries"][0]["version"]["clock"];
    types(&world, "made", "my fourth");
    let diff = json!({"path": "made", "from": clock});
    let diff = agent.client.ok("file/diff", diff).to_string();
    assert!(diff.contains("my fourth"), "{diff}");
    let undone = agent
        .client
        .ok("undo", json!({"session": "s", "likely": true}));
    assert_eq!(
        on_disk(&world, "made").unwrap(),
        "my line\nmy second\nmy third\nmy fourth\n",
        "{undone}"
    );
}

#[test]
fn a_change_before_the_next_command_is_the_users_and_one_in_it_is_the_commands() {
    let world = world();
    let mut agent = world.session("s");
    command(&world, &mut agent, "echo 'line 1' > made; echo x > gone");
    types(&world, "made", "my line");
    fs::remove_file(world.path("gone")).unwrap();
    command(&world, &mut agent, "echo 'line 3' >> made");
    let all = [MADE, USERS, "modified agent command"];
    assert_eq!(log(&mut agent, "made"), all);
    let lines = ["agent: line 1", "user: my line", "agent: line 3"];
    assert_eq!(blame(&mut agent, "made"), lines);
    assert_eq!(log(&mut agent, "gone"), [MADE, "deleted user unmarked"]);
    types(&world, "gone", "another");
    assert_eq!(log(&mut agent, "gone"), ["created user unmarked"]);
}

#[test]
fn a_change_while_no_daemon_ran_and_before_a_read_is_the_users() {
    let mut world = world();
    let mut agent = world.session("s");
    command(&world, &mut agent, "echo 'line 1' > made; echo 1 > read");
    world.kill();
    types(&world, "made", "my line");
    world.start();
    let mut agent = world.session("s");
    assert_eq!(log(&mut agent, "made"), [MADE, USERS]);
    types(&world, "read", "2");
    agent.ok("file/read", json!({"path": "read"}));
    assert_eq!(log(&mut agent, "read"), [MADE, USERS]);
    // It is tracked from here on, and was read after the user's change.
    let modified = agent.ok("modified/take", json!({}));
    assert_eq!(modified["changes"], json!([]), "{modified}");
}

#[test]
fn what_a_command_moves_and_removes_is_not_the_users() {
    let world = world();
    let mut agent = world.session("s");
    command(&world, &mut agent, "echo 'line 1' > a; echo 'line 2' > b");
    command(&world, &mut agent, "mv a c; rm b");
    let all = |agent: &mut Session| {
        let log = agent.client.ok("file/log", json!({}));
        let entries = log["entries"].as_array().unwrap().iter();
        let by = entries.map(|entry| text(&entry["version"]["author"], "kind"));
        by.collect::<Vec<_>>()
    };
    let by_agent = all(&mut agent);
    assert!(by_agent.iter().all(|by| by == "agent"), "{by_agent:?}");
    types(&world, "c", "mine");
    let now = all(&mut agent);
    assert_eq!(now[0], "user");
    assert_eq!(now[1..], by_agent);
    fs::rename(world.path("c"), world.path("d")).unwrap();
    assert_eq!(
        log(&mut agent, "c").last().unwrap(),
        "deleted user unmarked"
    );
}

/// A file that the user adds to `.gitignore` gets no more versions.
#[test]
fn a_file_that_is_ignored_by_now_is_left_alone() {
    let world = world();
    sh(&world, "git init -q -b main");
    let mut agent = world.session("s");
    command(&world, &mut agent, "echo 'line 1' > made");
    world.file(".gitignore", "made\n");
    command(&world, &mut agent, "true");
    types(&world, "made", "my line");
    assert_eq!(log(&mut agent, "made"), [MADE]);
}

#[test]
fn what_git_brings_in_masses_is_not_looked_at_later() {
    let world = world();
    for n in 0..210 {
        world.file(&format!("many/{n}"), format!("one {n}\n"));
    }
    world.file("few", "one\n");
    sh(
        &world,
        "git init -q -b main && git add -A && git commit -qm one && git checkout -qb two && for f in many/*; do echo two > $f; done && git commit -qam two && git checkout -q main",
    );
    let mut agent = world.session("s");
    command(&world, &mut agent, "true");
    command(&world, &mut agent, "git checkout -q two; echo x > made");
    types(&world, "many/1", "mine");
    types(&world, "made", "mine");
    assert_eq!(log(&mut agent, "many/1"), ["modified agent command"]);
    assert_eq!(log(&mut agent, "made"), [MADE, USERS]);
    // A few files may be the command's own, committed by it.
    command(&world, &mut agent, "echo 2 >> few; git commit -qam few");
    types(&world, "few", "mine");
    assert_eq!(log(&mut agent, "few"), ["modified agent command", USERS]);
}
