//! The commands for checkpoints, warnings, tasks, models, stats and forgetting.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use touchmark_tests::world::binary;
use touchmark_tests::{World, user};

/// Returns the number of workspaces with stored state. Each also has a lock
/// file.
fn stored(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap();
    entries
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count()
}

/// Runs a command, which must exit with this code. Returns its output.
fn run(world: &World, args: &[&str], code: i32) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = world.run(args);
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(
        status.code(),
        Some(code),
        "touchmark {args:?}\n{text}{said}"
    );
    text + &said
}

fn facts(world: &World, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&run(world, &args, 0)).unwrap()
}

#[test]
fn a_checkpoint_and_its_warning() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    world.session("s").read("a.txt");
    assert!(run(&world, &["checkpoint", "list"], 0).contains("no checkpoints"));
    assert!(run(&world, &["checkpoint", "list", "--session", "s"], 0).contains("no checkpoints"));
    let made = facts(
        &world,
        &["checkpoint", "create", "before lunch", "--session", "s"],
    );
    let name = made["checkpoint"].as_str().unwrap();
    world.set_env("TOUCHMARK_SESSION", "s");
    let listed = run(&world, &["checkpoint", "list"], 0);
    assert!(
        listed.contains(name) && listed.contains("before lunch"),
        "{listed}"
    );
    let detect = ["checkpoint", "detect", name];
    assert!(run(&world, &detect, 0).contains("nothing was edited"));
    user::write(&world.path("a.txt"), "two\n");
    let found = run(&world, &detect, 0);
    assert!(
        found.contains("a.txt") && found.contains("by you"),
        "{found}"
    );
    let found = facts(&world, &["checkpoint", "detect", name, "--warn"]);
    assert_eq!(found["files"][0]["differs"], true);
    assert_eq!(found["warning"]["files"], json!(["a.txt"]));
    run(&world, &["checkpoint", "delete", name], 0);
    run(&world, &["checkpoint", "delete", name], 4);
    assert_eq!(
        facts(&world, &["checkpoint", "list"])["checkpoints"],
        json!([])
    );
}

#[test]
fn savings() {
    let world = World::new();
    let mut session = world.session("s");
    world.file("a.txt", "0123456789\n");
    for _ in 0..3 {
        session.ok("file/readText", json!({"path": "a.txt"}));
    }
    let saved = facts(&world, &["stats"]);
    assert_eq!(
        (saved["repeats"].clone(), saved["bytesNotSent"].clone()),
        (json!(2), json!(22))
    );
    assert!(run(&world, &["stats", "--session", "s"], 0).contains("22 bytes not sent again"));
}

#[test]
fn forgetting_takes_what_was_named_and_no_more() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    world.session("s").read("a.txt");
    world.session("t").read("a.txt");
    run(&world, &["forget"], 2);
    run(&world, &["forget", "--session", "s", "--all"], 2);
    run(&world, &["forget", "--session", "s"], 0);
    let names: Vec<Value> = facts(&world, &["sessions"])["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["session"].clone())
        .collect();
    assert_eq!(names, [json!("t")]);

    // Line counts come of kept contents.
    let counted = |content: &str| {
        user::write(&world.path("a.txt"), content);
        let changes = facts(&world, &["modified", "--session", "t"]);
        changes["changes"][0]["lines"].clone()
    };
    assert_eq!(counted("one\ntwo\n"), json!({"added": 1, "removed": 0}));
    assert_eq!(
        facts(&world, &["forget", "--contents"]),
        json!({"forgotten": "contents"})
    );
    assert_eq!(counted("one\ntwo\nthree\n"), Value::Null);
    // The versions stay.
    let versions = facts(&world, &["history", "a.txt"])["versions"].clone();
    assert_eq!(versions.as_array().unwrap().len(), 3);

    // Everything; the daemon ends before.
    let state = world.state();
    assert_eq!(stored(&state.join("touchmark")), 1);
    // There is no terminal on which to ask.
    assert!(run(&world, &["forget", "--all"], 2).contains("--yes"));
    run(&world, &["forget", "--all", "--yes"], 0);
    assert_eq!(world.wait_end(), Some(0));
    assert_eq!(stored(&state.join("touchmark")), 0);
    assert!(run(&world, &["forget", "--all", "--yes"], 0).contains("nothing is stored"));
    assert_eq!(
        fs::read_to_string(world.path("a.txt")).unwrap(),
        "one\ntwo\nthree\n"
    );
}

#[test]
fn what_may_be_nowhere_else_is_not_forgotten_by_the_way() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let mut session = world.session("s");
    session.ok("file/readText", json!({"path": "a.txt"}));
    user::write(&world.path("a.txt"), "precious\n");
    session.ok(
        "file/write",
        json!({"path": "a.txt", "text": "over it\n", "force": true}),
    );
    assert!(run(&world, &["forget", "--all"], 1).contains("recovered"));
    world.healthy();
    run(&world, &["forget", "--all", "--recovered", "--yes"], 0);
    assert_eq!(world.wait_end(), Some(0));
    assert_eq!(
        fs::read_dir(world.state().join("touchmark"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn workspaces_that_no_longer_exist_are_forgotten() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let states = || stored(&world.state().join("touchmark"));
    let nothing = "nothing is stored for workspaces";
    assert!(run(&world, &["forget", "--vanished"], 0).contains(nothing));
    let other = world.outside().join("other");
    let named = other.to_str().unwrap();
    let elsewhere = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        world.dress(&mut command);
        let output = command
            .args(arguments)
            .current_dir(&other)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    fs::create_dir_all(other.join(".git")).unwrap();
    fs::write(other.join("a.txt"), "one\n").unwrap();
    let asked = r#"{"session": "s", "path": "a.txt"}"#;
    elsewhere(&["call", "file/readText", asked]);
    fs::write(other.join("a.txt"), "precious\n").unwrap();
    let forced = r#"{"session": "s", "path": "a.txt", "text": "over it\n", "force": true}"#;
    elsewhere(&["call", "file/write", forced]);
    elsewhere(&["stop"]);
    // It still exists.
    assert!(run(&world, &["forget", "--vanished"], 0).contains(nothing));
    fs::remove_dir_all(&other).unwrap();
    assert_eq!(states(), 2);
    assert!(run(&world, &["forget", "--vanished"], 1).contains("--recovered"));
    assert_eq!(states(), 2);
    assert_eq!(
        facts(&world, &["forget", "--vanished", "--recovered"]),
        json!({"forgotten": "vanished", "removed": [named], "kept": []})
    );
    assert_eq!(states(), 1);
    world.healthy();
}
