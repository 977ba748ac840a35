//! REV-4, REV-5: what a person leaves on a change in the review: a mark that it
//! was viewed, and a comment to the agent. And how changes are found.

use std::fs;

use serde_json::{Value, json};
use touchmark_tests::hooks::Talk;
use touchmark_tests::hooks::agent::Agent;
use touchmark_tests::terminal::Terminal;
use touchmark_tests::world::binary;
use touchmark_tests::{Client, World, text, user};

fn ten() -> String {
    (1..=10).map(|n| format!("line {n}\n")).collect()
}

/// An agent that has changed two lines of `a.txt` and one of `b.txt` in its first
/// turn.
fn worked<'w>(world: &'w World, agent: &'static str, session: &str) -> Talk<'w> {
    world.file("a.txt", ten());
    world.file("b.txt", ten());
    let mut talk = Talk::new(world, agent, session);
    talk.start();
    talk.prompt("p1", "change it");
    talk.read("a.txt");
    talk.edit("a.txt", "line 2", "retry twice");
    talk.edit("a.txt", "line 8", "wait longer");
    talk.read("b.txt");
    talk.edit("b.txt", "line 5", "five");
    stop(&talk);
    talk
}

fn stop(talk: &Talk<'_>) {
    if talk.voice.has("stop") {
        talk.say(&talk.voice.stop());
    }
}

/// Gives the agent its next prompt, and returns what it is told.
fn next(talk: &Talk<'_>, id: &str) -> String {
    let heard = talk.prompt(id, "go on");
    stop(talk);
    heard.text()
}

fn queue(client: &mut Client) -> Value {
    client.ok("review/list", json!({}))
}

/// Returns the change that has these lines.
fn change(client: &mut Client, after: &str) -> Value {
    let queue = queue(client);
    let mut all = queue["hunks"].as_array().unwrap().iter();
    let found = all.find(|hunk| text(hunk, "after").contains(after));
    found.unwrap_or_else(|| panic!("{after}: {queue}")).clone()
}

fn on(hunk: &Value, said: &str) -> Value {
    json!({"path": hunk["path"], "id": hunk["id"], "text": said})
}

/// Returns whether each session has received the comments, in their order.
fn states(client: &mut Client) -> Vec<String> {
    let queue = queue(client);
    let all = queue["comments"].as_array().into_iter().flatten();
    let to = all.flat_map(|comment| comment["to"].as_array().unwrap());
    to.map(|to| text(to, "state").to_owned()).collect()
}

/// Returns the file of this name in the workspace's state directory.
fn stored(world: &World, name: &str) -> String {
    let all = fs::read_dir(world.state().join("touchmark")).unwrap();
    let mut places = all.map(|entry| entry.unwrap().path().join(name));
    let place = places.find(|place| place.exists());
    fs::read_to_string(place.unwrap()).unwrap()
}

/// Runs a command of the user, and returns what it printed.
fn ran(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn rev4_a_viewed_change_stays_viewed_until_its_lines_change() {
    let mut world = World::new();
    worked(&world, "claude", "s");
    let mut client = world.client();
    let named = |hunk: &Value| json!([{"path": hunk["path"], "id": hunk["id"]}]);
    let [first, other] = ["retry", "five"].map(|one| change(&mut client, one));
    assert_eq!(first["viewed"], Value::Null);
    let view = |client: &mut Client, hunk: &Value, viewed: bool| {
        let ask = json!({"hunks": named(hunk), "viewed": viewed});
        client.ok("review/view", ask)["changed"].clone()
    };
    assert_eq!(view(&mut client, &first, true), 1);
    assert_eq!(view(&mut client, &first, true), 0);
    assert_eq!(view(&mut client, &other, true), 1);
    let viewed = |client: &mut Client| {
        let queue = queue(client);
        let all = queue["hunks"].as_array().unwrap().iter();
        let viewed = all.filter(|hunk| hunk["viewed"] == true);
        viewed
            .map(|hunk| text(hunk, "after").trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(viewed(&mut client), ["retry twice", "five"]);
    // Lines above move it, and a restart changes nothing.
    user::replace(
        &world.path("a.txt"),
        &format!("mine\n{}", fs::read_to_string(world.path("a.txt")).unwrap()),
    );
    world.stop();
    world.start();
    let mut client = world.client();
    assert_eq!(viewed(&mut client), ["retry twice", "five"]);

    let listed = ran(&world, &["review", "--list"]);
    assert!(
        listed.contains("a.txt: line 3  by claude-1, viewed\n"),
        "{listed}"
    );
    assert!(listed.ends_with("2 of 3 viewed\n"), "{listed}");
    let left = ran(&world, &["review", "--list", "--unviewed"]);
    assert!(
        left.contains("wait longer") && !left.contains("retry"),
        "{left}"
    );
    let seen = ran(&world, &["review", "--list", "--viewed"]);
    assert!(
        !seen.contains("+wait longer") && seen.contains("+retry twice"),
        "{seen}"
    );

    // Another content is another change.
    let mut talk = Talk::new(&world, "claude", "s");
    talk.prompt("p2", "again");
    talk.read("a.txt");
    talk.edit("a.txt", "retry twice", "retry once");
    assert_eq!(viewed(&mut client), ["five"]);
    assert_eq!(view(&mut client, &other, false), 1);
    assert_eq!(viewed(&mut client), [""; 0]);
    assert_eq!(
        ran(&world, &["review", "--mark-viewed", "--", "a.txt"]),
        "marked as viewed: 2 changes\n"
    );
    let all = ran(&world, &["review", "--viewed", "--keep-all"]);
    assert_eq!(all, "kept: 2 changes\n");
    assert_eq!(queue(&mut client)["hunks"].as_array().unwrap().len(), 1);
    drop(talk);
    world.healthy();
}

#[test]
fn rev1_changes_are_found_by_path_lines_session_and_command() {
    let mut world = World::new();
    let mut talk = worked(&world, "claude", "s");
    talk.prompt("p2", "a command");
    talk.shell("sed -i 's/line 9/nine/' b.txt");
    let of = |words: &str| {
        let listed = ran(&world, &["review", "--list", "--search", words]);
        let lines = ["+retry twice", "+wait longer", "+five", "+nine"];
        let found = lines.map(|line| u8::from(listed.contains(&format!("{line}\n"))));
        found.map(|one| one.to_string()).concat()
    };
    assert_eq!(of("a.txt"), "1100");
    assert_eq!(of("TWICE retry"), "1000");
    assert_eq!(of("line 5"), "0010", "what was removed counts as well");
    assert_eq!(of("claude-1 b.txt"), "0011");
    assert_eq!(of("sed"), "0001");
    assert_eq!(of("nothing of it"), "0000");
    assert_eq!(
        ran(&world, &["review", "--search", "wait", "--keep-all"]),
        "kept: 1 change\n"
    );
    assert_eq!(of(""), "1011");
    drop(talk);
    world.healthy();
}

#[test]
fn rev5_a_comment_is_received_once_with_the_next_prompt() {
    let mut world = World::new();
    let mut talk = worked(&world, "claude", "s");
    let mut client = world.client();
    let hunk = change(&mut client, "retry");
    let said = client.ok("review/comment", on(&hunk, "wy?"));
    assert_eq!(said["comment"]["to"][0]["label"], "claude-1", "{said}");
    let said = ran(
        &world,
        &["review", "--comment", "Why?", "--search", "retry"],
    );
    assert_eq!(said, "“Why?”\n  waits for the next prompt of claude-1\n");
    assert_eq!(states(&mut client), ["waiting"]);
    // No other event carries it, and a restart loses nothing.
    talk.read("b.txt");
    drop(talk);
    world.stop();
    world.start();
    let mut client = world.client();
    let talk = Talk::new(&world, "claude", "s");
    let told = next(&talk, "p2");
    assert!(
        told.contains(
            "The user comments on your change of \"a.txt\", line 2:\n> Why?\n\
             The change, when the comment was written:\n- line 2\n+ retry twice\n\
             Answer the user's comment."
        ),
        "{told}"
    );
    assert!(!told.contains("wy?"), "{told}");
    assert_eq!(states(&mut client), ["told"]);
    assert_eq!(next(&talk, "p3"), "");

    // What was received stays listed, and what was not can be withdrawn.
    let listed = ran(&world, &["review", "--comments"]);
    assert!(
        listed.starts_with("a.txt: line 2: “Why?”\n  claude-1 received it"),
        "{listed}"
    );
    client.ok("review/comment", on(&hunk, "And this?"));
    assert_eq!(states(&mut client), ["told", "waiting"]);
    let withdrawn = ran(&world, &["review", "--comment", "", "--", "a.txt"]);
    assert_eq!(withdrawn, "withdrawn: 1 comment\n");
    client.refused("review/comment", on(&hunk, ""), "notFound");
    let long = "x".repeat(1_001);
    client.refused("review/comment", on(&hunk, &long), "tooLarge");
    assert_eq!(next(&talk, "p4"), "");

    // A session that has ended receives it if it is continued.
    client.ok("review/comment", on(&hunk, "Still here?"));
    talk.say(&talk.voice.end());
    assert_eq!(states(&mut client), ["told", "ended"]);
    assert!(next(&talk, "p5").contains("> Still here?"));
    assert_eq!(states(&mut client), ["told", "told"]);

    client.ok("contents/forget", json!({}));
    let comments = || stored(&world, "comments.json");
    assert!(!comments().contains("retry twice"), "{}", comments());
    client.ok("session/close", json!({"session": "s", "forget": true}));
    client.ok("sync", json!({}));
    assert_eq!(comments(), "[]");
    drop(talk);
    world.healthy();
}

#[test]
fn rev5_what_cannot_be_received_is_said() {
    let mut world = World::new();
    let mut client = world.client();
    // An agent that takes no text with a prompt receives it with another event.
    let mut cursor = worked(&world, "cursor", "c");
    let hunk = change(&mut client, "five");
    client.ok("review/comment", on(&hunk, "Why five?"));
    assert_eq!(states(&mut client), ["waitingForEvent"]);
    assert_eq!(next(&cursor, "p2"), "");
    let told = cursor.read("b.txt").told();
    assert!(told.contains("> Why five?"), "{told}");
    assert_eq!(states(&mut client), ["told"]);
    // A client without hooks receives none.
    let mut plain = world.session("plain");
    world.file("c.txt", "old\n");
    plain.read("c.txt");
    let write = json!({"path": "c.txt", "text": "plain\n"});
    plain.ok("file/write", write);
    let hunk = change(&mut client, "plain");
    let refused = client.refused("review/comment", on(&hunk, "Why?"), "unknownSession");
    assert!(refused.message.contains("hooks"), "{refused:?}");
    assert_eq!(states(&mut client), ["told"]);
    drop(cursor);
    world.healthy();
}

#[test]
fn off5_an_agent_writes_no_comments() {
    let world = World::new();
    let _other = worked(&world, "claude", "s");
    let mut agent = Agent::claude(&world, "agent");
    agent.begin();
    let file = world.outside().join("said");
    let (program, place) = (binary(), world.workspace().to_owned());
    let (program, place, out) = (program.display(), place.display(), file.display());
    agent.run(&format!(
        "{program} --workspace {place} review --comment Obey --search retry > {out}.part 2>&1; mv {out}.part {out}"
    ));
    touchmark_tests::process::until("the command has run", || file.exists());
    let said = fs::read_to_string(&file).unwrap();
    assert!(said.contains("only the user may do"), "{said}");
    assert_eq!(states(&mut world.client()), [""; 0]);
    let status = ran(&world, &["status"]);
    assert!(status.contains("review --comment"), "{status}");
    agent.end();
}

#[test]
fn review_on_a_terminal_marks_comments_and_searches() {
    let mut world = World::new();
    let talk = worked(&world, "claude", "s");
    let mut terminal = Terminal::start(world.command(&["review"]), 80, 40);
    let has = |rows: &[String], wanted: &str| rows.iter().any(|row| row.contains(wanted));
    terminal.until("three changes", |rows| has(rows, "(3 left)"));
    terminal.enter("c\n");
    terminal.until("the question", |rows| has(rows, "comment (nothing"));
    terminal.enter("Why twice?\n");
    let rows = terminal.until("the change again", |rows| {
        rows.iter().filter(|row| row.contains("(3 left)")).count() == 2
    });
    assert!(has(&rows, "“Why twice?”"), "{rows:#?}");
    assert!(
        has(&rows, "waits for the next prompt of claude-1"),
        "{rows:#?}"
    );
    terminal.enter("v\n");
    terminal.until("the next change", |rows| has(rows, "(2 left)"));
    terminal.enter("/\n");
    terminal.until("the words", |rows| has(rows, "search (nothing"));
    terminal.enter("FIVE\n");
    terminal.until("one change", |rows| {
        has(rows, "(1 left)") && has(rows, "+five")
    });
    terminal.enter("q\n");
    let rows = terminal.until("the end", |rows| has(rows, "touchmark review --viewed"));
    assert!(
        has(&rows, "kept 0, undid 0, left 0 for later, viewed 1"),
        "{rows:#?}"
    );
    assert!(!terminal.has_wrapped(), "{rows:#?}");
    drop((terminal, talk));
    world.healthy();
}
