//! Users' writes and disconnecting clients while an edit is open: what can only
//! be tested with real connections and real time.

use std::fs;

use serde_json::json;
use touchmark_tests::process::until;
use touchmark_tests::{World, authors, text, user};

#[test]
fn attr9_a_bound_edits_client_dies_between_its_write_and_its_commit() {
    let mut world = World::new();
    world.file("a", "0\n");
    let (mut agent, mut other) = (world.session("s"), world.session("o"));
    agent.read("a");
    other.read("a");
    agent.ok(
        "edit/begin",
        json!({"files": [{"path": "a"}], "bind": true}),
    );
    user::write(&world.path("a"), "agent\n");
    other.sync();
    drop(agent);
    until("the edit does not end", || {
        other.client.ok("status", json!({}))["openEdits"] == 0
    });
    user::write(&world.path("a"), "user\n");
    assert_eq!(other.story("a"), ["agent:s marked", "user unmarked"]);
    world.healthy();
}

#[test]
fn attr9_who_waited_for_an_edit_and_went_leaves_the_way_to_the_next() {
    let mut world = World::new();
    world.file("a", "0\n");
    let mut sessions = ["s", "t", "u"].map(|name| world.session(name));
    for session in &mut sessions {
        session.read("a");
    }
    let [mut holder, mut gone, mut next] = sessions;
    let edit = holder.begin("a", None).unwrap();
    let wait =
        |session: &str| json!({"session": session, "files": [{"path": "a"}], "waitMs": 20_000});
    gone.client.send("edit/begin", &wait("t"));
    let waiting = next.client.send("edit/begin", &wait("u"));
    // Both wait: what comes behind it on its connection is answered only then.
    gone.sync();
    next.sync();
    let mut connections = || holder.client.ok("status", json!({}))["connections"].clone();
    let before = connections();
    drop(gone);
    until("the connection does not end", || connections() != before);
    holder.abort(&edit);
    let begun = next.client.answer(waiting).unwrap();
    let status = holder.client.ok("status", json!({}));
    assert_eq!(status["openEdits"], 1, "{status} {begun}");
    next.abort(&text(&begun, "edit"));
    world.healthy();
}

#[test]
fn attr5_what_a_user_cuts_while_an_edit_is_open_is_told() {
    let mut world = World::new();
    world.file("a", "ab\nx\nuser's work\n");
    let (mut agent, mut other) = (world.session("s"), world.session("o"));
    agent.read("a");
    other.read("a");
    let edit = agent.begin("a", Some("ab\nagent\n")).unwrap();
    // A beginning of what the tool will write, and a save all the same.
    user::write(&world.path("a"), "ab\n");
    user::pause(1_000);
    let told = other.take();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(authors(&told[0]), ["user"], "{told:?}");
    user::write(&world.path("a"), "ab\nagent\n");
    let done = agent.commit(&edit, "a", Some("ab\nagent\n"));
    // The save took lines away and had none that the session had not seen.
    assert_eq!(done["outcome"], "applied", "{done}");
    assert_eq!(agent.story("a"), ["user unmarked", "agent:s declared"]);
    assert_eq!(agent.take(), Vec::<serde_json::Value>::new());
    world.healthy();
}

#[test]
fn attr5_a_user_deletes_while_an_edit_is_open() {
    let mut world = World::new();
    world.file("a", "0\n");
    let mut agent = world.session("s");
    agent.read("a");
    let edit = agent.begin("a", Some("1\n")).unwrap();
    fs::remove_file(world.path("a")).unwrap();
    user::pause(1_000);
    user::write(&world.path("a"), "1\n");
    let done = agent.commit(&edit, "a", Some("1\n"));
    assert_eq!(done["outcome"], "clobbered", "{done}");
    assert_eq!(agent.story("a"), ["user unmarked", "agent:s declared"]);
    let told = agent.take();
    assert_eq!(told[0]["lost"]["kind"], "deleted", "{told:?}");
    world.healthy();
}
