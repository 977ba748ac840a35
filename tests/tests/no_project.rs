//! Directories that are no project: what only looks starts no daemon there
//! (LIFE-5).

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;
use tempfile::TempDir;
use touchmark_tests::World;
use touchmark_tests::hooks::feed;
use touchmark_tests::world::{binary, finish};

/// Returns a world, and a directory that is in no project.
fn outside() -> (World, TempDir) {
    (World::asleep(), tempfile::tempdir().unwrap())
}

fn command(world: &World, place: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).current_dir(place).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    world.dress(&mut command);
    command
}

fn run(world: &World, place: &Path, args: &[&str]) -> Output {
    let child = command(world, place, args).spawn().unwrap();
    finish(child, &format!("touchmark {args:?}"))
}

/// Returns what a hook says before a tool replaces a file unread.
fn gate(world: &World, file: &Path) -> String {
    let place = file.parent().unwrap();
    let event = json!({
        "session_id": "s", "cwd": place, "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_use_id": "t", "tool_input": {"file_path": file, "content": "other"},
    });
    let mut hook = command(world, place, &["hook", "claude"]);
    hook.env("TOUCHMARK_HOOK_MS", "10000");
    String::from_utf8(feed(hook, event.to_string().as_bytes()).stdout).unwrap()
}

#[test]
fn life5_a_look_outside_a_project_starts_no_daemon() {
    let (world, place) = outside();
    let place = place.path();
    let file = place.join("a.md");
    fs::write(&file, "mine\n").unwrap();
    assert_eq!(gate(&world, &file).trim(), "{}");
    for args in [
        &["log"][..],
        &["log", "a.md"],
        &["status"],
        &["blame", "a.md"],
        &["files"],
        &["modified"],
        &["sessions"],
        &["diff"],
        &["history", "a.md"],
        &["checkpoints"],
        &["watch"],
        &["ui", "--no-open"],
        &["review", "--list"],
        &["undo", "--list"],
        &["stats"],
        &["worktrees"],
        &["audit"],
        &["forget", "--contents"],
    ] {
        let output = run(&world, place, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        let what = "no project here; `--workspace .` makes this directory one";
        assert!(said.contains(what), "{args:?}: {said}");
        assert!(said.contains("hooks do nothing"), "{args:?}: {said}");
    }
    let doctor = run(&world, place, &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("no project here"), "{said}");
    assert!(said.contains("hooks do nothing"), "{said}");
    assert_eq!(world.left_behind(), Vec::<String>::new());
    // The gate is as before the looks.
    assert_eq!(gate(&world, &file).trim(), "{}");

    // As the message says.
    let named = run(&world, place, &["--workspace", ".", "log"]);
    assert!(named.status.success(), "{named:?}");
    assert!(gate(&world, &file).contains("deny"));
    assert!(run(&world, place, &["log"]).status.success());
    let doctor = run(&world, place, &["doctor"]);
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("no project here"));
    assert!(run(&world, place, &["stop"]).status.success());
}

#[test]
fn life5_in_a_project_a_look_starts_the_daemon() {
    for mark in [".git", ".touchmark.toml"] {
        let (world, place) = outside();
        let below = place.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        match mark {
            ".git" => fs::create_dir(place.path().join(mark)).unwrap(),
            _ => fs::write(place.path().join(mark), "").unwrap(),
        }
        assert!(run(&world, &below, &["log"]).status.success(), "{mark}");
        assert!(run(&world, &below, &["status"]).status.success(), "{mark}");
        assert!(run(&world, &below, &["stop"]).status.success(), "{mark}");
    }
}
