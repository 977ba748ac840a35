//! UNDO-5: sessions are told only the net result of undos and redos, and of
//! edits that were taken back and put back.

use std::fs;

use serde_json::{Value, json};
use touchmark_tests::hooks::Talk;
use touchmark_tests::terminal::Terminal;
use touchmark_tests::{World, user};

/// The edited file, before and after the edit of the session.
const BEFORE: &str = "one\ntwo\nthree\n";
const AFTER: &str = "one\nTWO\nthree\n";

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

/// Returns an agent that has changed `a.txt` in its first turn.
fn edited<'w>(world: &'w World, session: &str) -> Talk<'w> {
    world.file("a.txt", BEFORE);
    let mut talk = Talk::new(world, "claude", session);
    talk.start();
    talk.prompt("p1", "change it");
    talk.read("a.txt");
    talk.edit("a.txt", "two", "TWO");
    stop(&talk);
    assert_eq!(on_disk(world, "a.txt"), AFTER);
    talk
}

fn stop(talk: &Talk<'_>) {
    talk.say(&talk.voice.stop()).nothing();
}

/// Runs a command of the user, and returns what it printed.
fn ran(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Gives the agent its next prompt, and returns what it is told.
fn next(talk: &Talk<'_>, id: &str) -> String {
    let heard = talk.prompt(id, "go on");
    stop(talk);
    heard.text()
}

#[test]
fn undo1_undos_and_redos_are_in_the_feed() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    let mut subscriber = world.client();
    subscriber.ok("subscribe", json!({"kinds": ["undone"]}));
    ran(&world, &["undo", "claude-1", "--yes"]);
    let event = subscriber.event();
    assert_eq!(
        (&event["undo"], &event["redo"], &event["files"]),
        (&json!("u1"), &Value::Null, &json!(1)),
        "{event}"
    );
    assert_eq!(
        (&event["session"], &event["label"]),
        (&json!("s"), &json!("claude-1"))
    );
    ran(&world, &["redo", "--yes"]);
    let event = subscriber.event();
    assert_eq!(
        (&event["undo"], &event["redo"]),
        (&json!("u1"), &json!(true))
    );
    // What has happened already, and what happens.
    let mut terminal = Terminal::start(world.command(&["watch"]), 80, 24);
    let has = |rows: &[String], wanted: &str| rows.iter().any(|row| row.contains(wanted));
    terminal.until("the past", |rows| {
        has(rows, "undid      claude-1 in 1 file (u1)") && has(rows, "redid      1 file (u1)")
    });
    ran(&world, &["undo", "claude-1", "--yes"]);
    terminal.until("the next undo", |rows| has(rows, "claude-1 in 1 file (u3)"));
    assert!(!terminal.has_wrapped());
    drop((terminal, talk));
    world.healthy();
}

#[test]
fn undo5_an_undo_that_was_redone_before_it_was_told_is_not_told() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    ran(&world, &["undo", "claude-1", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), BEFORE);
    ran(&world, &["redo", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), AFTER);
    assert_eq!(next(&talk, "p2"), "");
    // Also not after a restart, which restores what is still to be told.
    ran(&world, &["undo", "claude-1", "--yes"]);
    drop(talk);
    world.restart();
    let talk = Talk::new(&world, "claude", "s");
    ran(&world, &["redo", "--yes"]);
    assert_eq!(next(&talk, "p3"), "");
    world.healthy();
}

#[test]
fn undo5_a_redo_after_the_undo_was_told_is_told() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    ran(&world, &["undo", "claude-1", "--yes"]);
    let told = next(&talk, "p2");
    assert!(
        told.contains("The user has undone changes of yours, on purpose, in \"a.txt\" (lines 2)."),
        "{told}"
    );
    ran(&world, &["redo", "--yes"]);
    let told = next(&talk, "p3");
    assert!(
        told.contains("The user has put back changes of yours that were undone, in \"a.txt\""),
        "{told}"
    );
    assert_eq!(told.matches("put back").count(), 1, "{told}");
    assert_eq!(next(&talk, "p4"), "", "it is told once");
    // The redo is reverted and put back again, and nothing is told of that.
    ran(&world, &["redo", "u2", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), BEFORE);
    ran(&world, &["redo", "u3", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), AFTER);
    assert_eq!(next(&talk, "p5"), "");
    world.healthy();
}

#[test]
fn undo5_of_several_undos_only_what_is_still_undone_is_told() {
    let mut world = World::new();
    let mut talk = edited(&world, "s");
    talk.prompt("p2", "and more");
    world.file("b.txt", BEFORE);
    talk.read("b.txt");
    talk.edit("b.txt", "three", "THREE");
    talk.edit("a.txt", "one", "ONE");
    stop(&talk);
    ran(&world, &["undo", "claude-1", "--prompt", "last", "--yes"]);
    ran(&world, &["undo", "claude-1", "--prompt", "p1", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), BEFORE);
    ran(&world, &["redo", "u1", "--yes"]);
    let told = next(&talk, "p3");
    assert_eq!(told.matches("has undone").count(), 1, "{told}");
    assert!(told.contains("in \"a.txt\" (lines 2)."), "{told}");
    // Told that it is undone, then put back and undone again: nothing is new.
    ran(&world, &["redo", "u2", "--yes"]);
    ran(&world, &["undo", "claude-1", "--prompt", "p1", "--yes"]);
    let told = next(&talk, "p4");
    assert!(!told.contains("has undone"), "{told}");
    assert!(!told.contains("has put back"), "{told}");
    world.healthy();
}

#[test]
fn undo5_a_commands_files_that_are_back_are_not_told() {
    let mut world = World::new();
    let mut talk = edited(&world, "s");
    talk.prompt("p2", "make files");
    talk.shell("echo 1 > f1.txt; sed -i s/three/THREE/ a.txt");
    stop(&talk);
    ran(&world, &["undo", "--last", "--yes", "--likely"]);
    assert!(!world.path("f1.txt").exists());
    ran(&world, &["redo", "--yes"]);
    assert_eq!(on_disk(&world, "f1.txt"), "1\n");
    let told = next(&talk, "p3");
    assert!(!told.contains("undone"), "{told}");
    world.healthy();
}

#[test]
fn undo5_an_edit_that_was_taken_back_and_is_back_is_told() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    // Taken back and put back before the session is told: nothing.
    user::replace(&world.path("a.txt"), BEFORE);
    user::replace(&world.path("a.txt"), AFTER);
    assert_eq!(next(&talk, "p2"), "");
    user::replace(&world.path("a.txt"), BEFORE);
    let told = next(&talk, "p3");
    assert!(told.contains("was taken back"), "{told}");
    assert_eq!(next(&talk, "p4"), "");
    user::replace(&world.path("a.txt"), AFTER);
    let told = next(&talk, "p5");
    assert!(
        told.contains("\"a.txt\" (your edit of lines 2, which was taken back, was put back outside any agent and is in place again)"),
        "{told}"
    );
    assert_eq!(next(&talk, "p6"), "", "it is told once");
    world.healthy();
}

#[test]
fn undo5_an_undo_during_an_answer_that_did_not_arrive_is_told_again() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    ran(&world, &["undo", "claude-1", "--yes"]);
    // An answer that no agent receives: it is not acknowledged.
    let event = talk.voice.prompt("p2", "go on");
    let lost = world
        .client()
        .ok("hook/event", json!({"agent": "claude", "input": event}));
    assert!(lost.to_string().contains("has undone"), "{lost}");
    stop(&talk);
    let told = next(&talk, "p3");
    assert!(told.contains("has undone"), "{told}");
    assert_eq!(next(&talk, "p4"), "");
    world.healthy();
}

#[test]
fn undo5_what_the_notice_of_an_undo_says_is_told_no_second_time() {
    let mut world = World::new();
    let talk = edited(&world, "s");
    // The user changes the file. The agent is told so, and does not read it.
    user::replace(&world.path("a.txt"), &format!("{AFTER}mine\n"));
    let told = next(&talk, "p2");
    assert!(told.contains("1 line added, 0 lines removed"), "{told}");
    ran(&world, &["undo", "claude-1", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), format!("{BEFORE}mine\n"));
    let told = next(&talk, "p3");
    assert!(told.contains("has undone changes of yours"), "{told}");
    assert_eq!(told.matches("a.txt").count(), 1, "{told}");
    assert_eq!(next(&talk, "p4"), "");
    // A further change by the user is told. The undo is not told again with it.
    ran(&world, &["redo", "--yes"]);
    user::replace(&world.path("a.txt"), &format!("{AFTER}mine\nnew\n"));
    let told = next(&talk, "p5");
    assert!(!told.contains("taken back"), "{told}");
    assert!(told.contains("modified"), "{told}");
    world.healthy();
}

#[test]
fn seen7_lines_of_others_are_no_lines_of_an_edit_that_was_taken_back() {
    let mut world = World::new();
    let mut talk = edited(&world, "s");
    talk.prompt("p2", "and more");
    user::replace(&world.path("a.txt"), &format!("mine\n{AFTER}"));
    talk.read("a.txt");
    talk.edit("a.txt", "three", "THREE");
    stop(&talk);
    user::replace(&world.path("a.txt"), BEFORE);
    let told = next(&talk, "p3");
    assert!(
        told.contains("(your edit of lines 3-4 was taken back"),
        "{told}"
    );
    world.healthy();
}
