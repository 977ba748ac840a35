//! ATTR-18, UNDO-7, UNDO-8: what changes while an agent's command runs may be
//! the user's. It is undone only if the user says so. The truth is who wrote
//! which unique line.

use std::fs;

use serde_json::{Value, json};
use touchmark_tests::{Session, World, text, user};

/// Runs what `body` does while a command of the session is running, and returns
/// the command's name.
fn beside(world: &World, agent: &mut Session, body: impl FnOnce(&World)) -> String {
    let begun = agent.ok("command/begin", json!({"label": "npm test"}));
    body(world);
    let command = text(&begun, "command");
    agent.client.ok("command/end", json!({"command": command}));
    command
}

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

fn undo(agent: &mut Session, mut params: Value) -> Value {
    params["session"] = json!("a");
    agent.client.ok("undo", params)
}

/// A user saves the file, and the daemon records it.
fn saved(world: &World, content: &str) {
    user::overwrite(&world.path("f"), content);
    world.client().ok("sync", json!({}));
}

/// Returns the outcome of the only file.
fn outcome(undone: &Value) -> String {
    assert_eq!(undone["files"].as_array().unwrap().len(), 1, "{undone}");
    text(&undone["files"][0], "outcome")
}

/// Returns a world with a file of three lines that the session `a` has read.
fn world() -> (World, Session) {
    let world = World::new();
    let mut agent = world.session("a");
    world.file("f", "one\ntwo\nthree\n");
    agent.read("f");
    (world, agent)
}

#[test]
fn undo7_a_save_beside_a_command_stays_and_is_listed() {
    let (mut world, mut agent) = world();
    let command = beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "one\nmine\ntwo\nthree\n");
    });
    let undone = undo(&mut agent, json!({}));
    assert_eq!(on_disk(&world, "f"), "one\nmine\ntwo\nthree\n");
    assert_eq!(outcome(&undone), "left", "{undone}");
    assert_eq!(undone["undo"], Value::Null);
    let left = &undone["files"][0]["left"][0];
    assert_eq!(text(left, "cause"), "likely");
    assert_eq!(text(left, "text"), "mine\n");
    assert_eq!(left["lines"], json!({"start": 2, "end": 2}));
    assert_eq!(text(left, "command"), command);
    assert_eq!(text(&undone["commands"][0], "label"), "npm test");

    // The log and the queue say that the author is only likely.
    let queue = agent.client.ok("review/list", json!({}));
    assert_eq!(queue["hunks"][0]["likely"], true, "{queue}");

    // The flag takes it, and `redo` brings it back.
    let undone = undo(&mut agent, json!({"likely": true}));
    assert_eq!(outcome(&undone), "undone", "{undone}");
    assert_eq!(on_disk(&world, "f"), "one\ntwo\nthree\n");
    agent.client.ok("redo", json!({}));
    assert_eq!(on_disk(&world, "f"), "one\nmine\ntwo\nthree\n");
    // A second undo does not take it unasked either.
    let undone = undo(&mut agent, json!({}));
    assert_eq!(on_disk(&world, "f"), "one\nmine\ntwo\nthree\n", "{undone}");
    world.healthy();
}

#[test]
fn undo7_what_was_brought_back_beside_a_command_stays_and_is_listed() {
    // A user takes a deletion back in the editor; and an unknown author's change,
    // which was made while no daemon ran.
    for is_known in [true, false] {
        let (mut world, mut agent) = world();
        let mine = "one\nmine\ntwo\nthree\n";
        saved(&world, mine);
        if is_known {
            saved(&world, "one\ntwo\nthree\n");
        } else {
            world.kill();
            user::overwrite(&world.path("f"), "one\nother\nthree\n");
            world.start();
            agent = world.session("a");
        }
        beside(&world, &mut agent, |world| {
            user::overwrite(&world.path("f"), mine);
        });
        let undone = undo(&mut agent, json!({}));
        assert_eq!(on_disk(&world, "f"), mine, "{undone}");
        assert_eq!(outcome(&undone), "left", "{undone}");
        let left = &undone["files"][0]["left"][0];
        assert_eq!(text(left, "cause"), "likely");
        assert!(text(left, "text").starts_with("mine\n"), "{undone}");
        let undone = undo(&mut agent, json!({"likely": true}));
        assert_eq!(outcome(&undone), "undone", "{undone}");
        assert!(!on_disk(&world, "f").contains("mine"), "{undone}");
        world.healthy();
    }
}

#[test]
fn undo7_what_a_command_removed_comes_back_and_a_certain_edit_goes() {
    let (world, mut agent) = world();
    let params = json!({"path": "f", "text": "one\ntwo\nagent\nthree\n"});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "two\nagent\nthree\nnew\n");
    });
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcome(&undone), "partly", "{undone}");
    assert_eq!(on_disk(&world, "f"), "one\ntwo\nthree\nnew\n");
    // Lines that only changed their white space or their order bring no text.
    let (mut world, mut agent) = self::world();
    beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "one\n  two\nthree\n");
    });
    beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "three\n  two\none\n");
    });
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcome(&undone), "undone", "{undone}");
    assert_eq!(on_disk(&world, "f"), "one\ntwo\nthree\n");
    world.healthy();
}

#[test]
fn attr18_a_change_is_the_users_or_the_agents_as_the_user_says() {
    let (mut world, mut agent) = world();
    let command = beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "one\nnew\ntwo\nthree\n");
    });
    let claimed = agent.client.ok("claim", json!({"command": command}));
    assert_eq!(claimed["versions"], 1, "{claimed}");
    let blame = agent.client.ok("file/blame", json!({"path": "f"}));
    assert_eq!(
        text(&blame["lines"][1]["author"], "kind"),
        "user",
        "{blame}"
    );
    assert_eq!(text(&blame["lines"][1], "evidence"), "claimed");
    let queue = agent.client.ok("review/list", json!({}));
    assert_eq!(queue["hunks"], json!([]));
    agent
        .client
        .refused("undo", json!({"session": "a"}), "notFound");

    // The user changes the answer. It survives a restart.
    agent
        .client
        .ok("claim", json!({"paths": ["f"], "session": "a"}));
    world.restart();
    let mut agent = world.session("a");
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcome(&undone), "undone", "{undone}");
    assert_eq!(on_disk(&world, "f"), "one\ntwo\nthree\n");
    world.healthy();
}

#[test]
fn attr18_lines_are_claimed_alone() {
    let (mut world, mut agent) = world();
    let params = json!({"path": "f", "text": "one\nA\nB\nC\ntwo\nthree\n"});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
    user::overwrite(&world.path("f"), "one\nA\nB\nC\ntwo\nthree\nU\nV\n");
    agent.sync();
    // What was listed before does not hide the answer.
    agent.client.ok("review/list", json!({}));
    let lines = |at: u32, by: Value| json!({"paths": ["f"], "lines": {"start": at, "end": at}, "session": by});
    let claimed = agent.client.ok("claim", lines(3, Value::Null));
    assert_eq!(claimed["lines"], 1, "{claimed}");
    agent.client.ok("claim", lines(8, json!("a")));
    let blame = agent.client.ok("file/blame", json!({"path": "f"}));
    let kinds: Vec<String> = (blame["lines"].as_array().unwrap().iter())
        .map(|line| text(&line["author"], "kind"))
        .collect();
    let expected = [
        "unknown", "agent", "user", "agent", "unknown", "unknown", "user", "agent",
    ];
    assert_eq!(kinds, expected, "{blame}");
    // The queue has the agent's lines and not the user's.
    let queue = agent.client.ok("review/list", json!({}));
    let after: String = (queue["hunks"].as_array().unwrap().iter())
        .map(|hunk| text(hunk, "after"))
        .collect();
    assert_eq!(after, "A\nC\nV\n", "{queue}");
    let undone = undo(&mut agent, json!({}));
    assert_eq!(outcome(&undone), "undone", "{undone}");
    assert_eq!(on_disk(&world, "f"), "one\nB\ntwo\nthree\nU\n");
    world.healthy();
}

#[test]
fn undo8_the_exit_code_says_whether_anything_was_undone() {
    let (mut world, mut agent) = world();
    let command = beside(&world, &mut agent, |world| {
        user::overwrite(&world.path("f"), "one\nmine\ntwo\nthree\n");
    });
    let output = world.run(&["undo", "a", "--yes"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("left"), "{said}");
    assert!(said.contains("line 2: stays, may be yours"), "{said}");
    assert!(said.contains("`npm test`"), "{said}");
    assert!(said.contains("mine"), "{said}");
    assert!(said.contains("nothing was undone"), "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let output = world.run(&["claim", "--command", &command, "--by", "a"]);
    assert!(output.status.success(), "{output:?}");
    let output = world.run(&["undo", "a", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(on_disk(&world, "f"), "one\ntwo\nthree\n");
    world.healthy();
}
