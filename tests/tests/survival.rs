//! SURV: how many lines of agents are left, with a real daemon and git. A day
//! passes between two runs of the daemon: the file that has its time between
//! runs (LIM-3) is set forward.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use touchmark_tests::process::until;
use touchmark_tests::{Session, World, text, user};

const HOUR: u64 = 3_600_000;

/// The numbers under which kinds of facts are stored.
const REFUSED: u8 = 29;
const UNDONE: u8 = 31;
const BROUGHT_BACK: u8 = 32;

fn own_state(world: &World) -> PathBuf {
    let key = world.socket().file_stem().unwrap();
    world.state().join("touchmark").join(key)
}

/// Lets time pass while no daemon runs.
fn pass(world: &World, time: u64) {
    let file = own_state(world).join("clock");
    let mut clock: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    clock["ahead"] = json!(clock["ahead"].as_i64().unwrap() + time.cast_signed());
    fs::write(&file, clock.to_string()).unwrap();
}

/// Returns the stored facts of some kinds: the kind and the bytes, in order.
/// No daemon runs.
fn facts(world: &World, kinds: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let script = "import sqlite3, sys
for (body,) in sqlite3.connect(sys.argv[1]).execute('SELECT body FROM fact ORDER BY n'):
    print(body.hex())";
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(own_state(world).join("store.db"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let body = |line: &str| -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
        (0..line.len()).step_by(2).map(byte).collect()
    };
    // The format, a list of two, and the number of the kind as one byte.
    let all = lines.lines().map(body);
    all.filter(|body| body.starts_with(&[0x81, 0x82, 0x18]) && kinds.contains(&body[3]))
        .map(|body| (body[3], body))
        .collect()
}

fn git(world: &World, args: &[&str]) {
    user::git(world.workspace(), args);
}

/// Waits until the wall clock shows a later second: git tells no more of the
/// time of a commit.
fn next_second() {
    let second = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let now = second();
    until("the clock goes on", || second() > now);
}

/// Commits everything.
fn commit(world: &World) {
    git(world, &["add", "-A"]);
    git(world, &["commit", "-q", "-m", "more"]);
}

fn world() -> World {
    let world = World::new();
    git(&world, &["init", "-q"]);
    world
}

fn agent(world: &World, name: &str, model: &str) -> Session {
    let mut agent = world.session(name);
    let program = json!({"name": "robot", "version": "1"});
    agent.ok("session/open", json!({"agent": program}));
    let model = json!({"modelId": model, "providerId": "p", "mode": "code"});
    agent.ok("model/record", model);
    agent
}

fn write(agent: &mut Session, path: &str, content: &str) {
    let params = json!({"path": path, "text": content, "force": true});
    let outcome = text(&agent.ok("file/write", params), "outcome");
    // The agent has not read what others wrote.
    assert!(["applied", "clobbered"].contains(&&*outcome), "{outcome}");
}

/// Returns the rows of `survival/list`, each as `model versions added` and
/// `alive/added+waiting` at the commit, after a day, after a week.
fn list(world: &World) -> Vec<String> {
    let answer = world.client().ok("survival/list", json!({}));
    let rows = answer["rows"].as_array().unwrap().iter();
    let mut rows: Vec<String> = rows
        .map(|row| {
            assert_eq!(row["agent"], "robot");
            let sums = ["commit", "day", "week"].map(|at| {
                let sums = &row[at];
                format!("{}/{}+{}", sums["alive"], sums["added"], sums["waiting"])
            });
            format!(
                "{} {} {}: {}",
                text(row, "model"),
                row["versions"],
                row["added"],
                sums.join(" ")
            )
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn surv1_lines_are_counted_at_the_commit_after_a_day_and_after_a_week() {
    let mut world = world();
    world.file("f", "one\ntwo\n");
    commit(&world);
    let mut a = agent(&world, "a", "m1");
    let mut b = agent(&world, "b", "m2");
    write(&mut a, "f", "one\ntwo\na 1\na 2\na 3\na 4\n");
    write(&mut b, "f", "one\nb 1\nb 2\ntwo\na 1\na 2\na 3\na 4\n");
    // Two lines are moved, one is removed: by the user.
    user::overwrite(&world.path("f"), "a 3\na 4\none\nb 1\nb 2\ntwo\na 1\n");
    a.sync();
    assert_eq!(
        list(&world),
        ["m1 0 0: 0/0+1 0/0+1 0/0+1", "m2 0 0: 0/0+1 0/0+1 0/0+1"]
    );
    // Another file is committed. That says nothing about this one.
    world.file("g", "g\n");
    git(&world, &["add", "g"]);
    git(&world, &["commit", "-q", "-m", "other"]);
    assert_eq!(list(&world)[0], "m1 0 0: 0/0+1 0/0+1 0/0+1");
    commit(&world);
    let committed = ["m1 1 4: 3/4+0 0/0+1 0/0+1", "m2 1 2: 2/2+0 0/0+1 0/0+1"];
    assert_eq!(list(&world), committed);
    assert_eq!(list(&world), committed, "once");
    // Before the day is over, the user removes a line of each, and brings one
    // back.
    user::overwrite(&world.path("f"), "a 3\na 4\none\nb 2\ntwo\na 1\na 2\n");
    a.sync();
    world.stop();
    pass(&world, 23 * HOUR);
    world.start();
    assert_eq!(list(&world), committed);
    world.stop();
    pass(&world, HOUR);
    world.start();
    // There was no request yet. What happens now is after the day.
    user::overwrite(&world.path("f"), "one\ntwo\n");
    world.session("a").sync();
    let after = ["m1 1 4: 3/4+0 4/4+0 0/0+1", "m2 1 2: 2/2+0 1/2+0 0/0+1"];
    assert_eq!(list(&world), after);
    world.stop();
    pass(&world, 6 * 24 * HOUR);
    world.start();
    let last = ["m1 1 4: 3/4+0 4/4+0 0/4+0", "m2 1 2: 2/2+0 1/2+0 0/2+0"];
    assert_eq!(list(&world), last);
    world.healthy();
}

#[test]
fn surv1_a_file_that_is_left_out_renamed_or_removed_is_judged_by_its_lines() {
    let mut world = world();
    for name in ["partly", "moved", "gone", "undone"] {
        world.file(name, "one\n");
    }
    commit(&world);
    let mut a = agent(&world, "a", "m");
    for name in ["partly", "moved", "gone", "undone", "new"] {
        write(&mut a, name, &format!("one\n1 {name}\n2 {name}\n"));
    }
    // A part of the file is committed, one is removed, one is renamed, and one
    // is as it was: nothing of it is left to commit.
    user::overwrite(&world.path("partly"), "one\n1 partly\n");
    git(&world, &["add", "partly"]);
    user::overwrite(&world.path("partly"), "one\n1 partly\n2 partly\n");
    fs::remove_file(world.path("gone")).unwrap();
    fs::rename(world.path("moved"), world.path("named")).unwrap();
    user::overwrite(&world.path("undone"), "one\n");
    a.sync();
    next_second();
    git(&world, &["add", "gone", "moved", "named"]);
    git(&world, &["commit", "-q", "-m", "some"]);
    // `new` is not in the commit and waits. 1 of 2, 2 of 2, 0 of 2, 0 of 2.
    // The rename is a version, which adds no line.
    let row = &list(&world)[0];
    assert!(row.starts_with("m 4 8: 3/8+"), "{row}");
    world.healthy();
}

#[test]
fn surv2_what_was_never_stored_is_not_judged() {
    let mut world = world();
    world.file("f", "one\n");
    commit(&world);
    let mut a = agent(&world, "a", "m");
    // A secret (SEC-3).
    write(&mut a, ".env", "A=1\nB=2\n");
    commit(&world);
    world.stop();
    pass(&world, 25 * HOUR);
    world.start();
    assert_eq!(list(&world), ["m 0 0: 0/0+1 0/0+0 0/0+1"]);
    world.healthy();
}

#[test]
fn refusals_undos_and_restored_contents_are_facts() {
    let mut world = World::new();
    world.file("f", "one\ntwo\n");
    world.file("g", "one\n");
    let mut a = agent(&world, "a", "m");
    let mut b = agent(&world, "b", "m");
    a.read("f");
    a.refused("edit/begin", json!({"files": [{"path": "g"}]}), "notRead");
    write(&mut a, "f", "one\ntwo\nthree\n");
    write(&mut a, "g", "two\n");
    write(&mut b, "g", "two\nthree\n");
    let mut client = world.client();
    let undone = client.ok("undo", json!({"session": "a"}));
    assert_eq!(undone["undo"], "u1", "{undone}");
    assert_eq!(client.ok("redo", json!({}))["undo"], "u2");
    let clock = text(&a.history("f")[0], "clock");
    let restored = client.ok(
        "file/restore",
        json!({"path": "f", "at": clock.split(':').nth(1).unwrap()}),
    );
    assert!(restored["files"][0]["outcome"].is_string(), "{restored}");
    let first = a.history("f");
    let first = text(first.last().unwrap(), "clock");
    let restored = client.ok(
        "file/restore",
        json!({"path": "f", "at": first.split(':').nth(1).unwrap()}),
    );
    assert_eq!(restored["files"][0]["outcome"], "restored");
    world.kill();
    let kinds: Vec<u8> = facts(&world, &[REFUSED, UNDONE, BROUGHT_BACK])
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    assert_eq!(kinds, [REFUSED, UNDONE, UNDONE, BROUGHT_BACK]);
}
