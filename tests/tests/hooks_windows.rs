//! ATTR-6: a command claims what its own processes may have written, from the
//! start of the first until the exit of the last.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::hooks::Heard;
use touchmark_tests::hooks::agent::{Agent, session, wait_for};
use touchmark_tests::process::until;
use touchmark_tests::{World, user};

const TEXT: &str = "one\ntwo\nthree\n";

/// Returns the newest version's author and evidence.
fn newest(world: &World, path: &str) -> (Value, String) {
    let history = world.client().ok("file/history", json!({"path": path}));
    let rows = history["versions"].as_array().unwrap();
    // A correction comes before what it corrects.
    let row = &rows[0];
    let evidence = row["evidence"].as_str().unwrap().to_owned();
    (row["author"]["session"].clone(), evidence)
}

fn is_the_users(world: &World, path: &str) -> bool {
    newest(world, path) == (Value::Null, "unmarked".to_owned())
}

fn is_the_commands(world: &World, path: &str) -> bool {
    newest(world, path) == (session(world).into(), "command".to_owned())
}

/// Returns an agent that has read these files.
fn agent<'a>(world: &'a World, files: &[&str]) -> Agent<'a> {
    for file in files {
        world.file(file, TEXT);
    }
    let mut agent = Agent::claude(world, &session(world));
    agent.begin();
    for file in files {
        agent.read(file);
    }
    agent
}

fn announce(agent: &mut Agent<'_>, call: &str) {
    let event = agent.voice.before_shell(call, "make");
    agent.say(&event).nothing();
}

fn come_back(agent: &mut Agent<'_>, call: &str) {
    let event = agent.voice.after_shell(call, "make", "");
    agent.say(&event);
}

fn exists(world: &World, file: &str) {
    until("the command has come so far", || world.path(file).exists());
}

#[test]
fn attr6_what_was_saved_before_a_command_began_is_the_users() {
    let world = World::new();
    let mut agent = agent(&world, &["a.txt", "b.txt"]);
    announce(&mut agent, "t");
    // While the user is asked to permit it.
    user::write(&world.path("a.txt"), "the user's\n");
    assert!(is_the_commands(&world, "a.txt"), "nobody knows better yet");
    // The system tells beginnings of processes in hundredths of a second.
    let saved = Instant::now();
    until("some have passed", || saved.elapsed().as_millis() > 50);
    agent.run(&format!(
        "{}; echo made > b.txt; touch made",
        wait_for("go")
    ));
    until("the save is the user's", || is_the_users(&world, "a.txt"));
    world.file("go", "");
    exists(&world, "made");
    assert!(is_the_commands(&world, "b.txt"));
    let told = agent.say(&agent.voice.after_shell("t", "make", "")).told();
    assert!(told.contains("b.txt") && !told.contains("a.txt"), "{told}");
    let told = agent.say(&agent.voice.prompt("q", "go on")).told();
    assert!(
        told.contains("a.txt") && told.contains("outside any agent"),
        "{told}"
    );
    agent.end();
}

#[test]
fn attr6_a_command_that_never_ran_claims_nothing() {
    let world = World::new();
    let mut agent = agent(&world, &["a.txt"]);
    announce(&mut agent, "t");
    user::write(&world.path("a.txt"), "the user's\n");
    assert!(is_the_commands(&world, "a.txt"), "nobody knows better yet");
    // Not a word of it: the user has said something else instead.
    agent.say(&agent.voice.prompt("q", "no, stop"));
    until("the save is the user's", || is_the_users(&world, "a.txt"));
    agent.end();
}

#[test]
fn attr6_what_goes_on_in_the_background_is_the_commands_until_it_ends() {
    for apart in ["", "setsid nohup"] {
        let world = World::new();
        let mut agent = agent(&world, &["a.txt", "b.txt"]);
        announce(&mut agent, "t");
        world.file(
            "later.sh",
            format!(
                "{}; echo late > a.txt; touch wrote; {}",
                wait_for("go"),
                wait_for("end")
            ),
        );
        agent.run(&format!("{apart} sh later.sh & touch back"));
        exists(&world, "back");
        come_back(&mut agent, "t");
        agent.say(&agent.voice.stop()).nothing();
        agent.say(&agent.voice.prompt("q", "go on"));
        world.file("go", "");
        exists(&world, "wrote");
        assert!(
            is_the_commands(&world, "a.txt"),
            "{apart}: {:?}",
            newest(&world, "a.txt")
        );
        world.file("end", "");
        let mut saves = 0;
        until("nothing claims what the user saves", || {
            // Another text each time: the same one again is no version.
            saves += 1;
            user::write(&world.path("b.txt"), &format!("{saves}\n"));
            is_the_users(&world, "b.txt")
        });
        agent.end();
    }
}

#[test]
fn attr6_a_command_without_an_end_is_its_own_after_the_agent_has_stopped() {
    let world = World::new();
    let mut agent = agent(&world, &["a.txt"]);
    announce(&mut agent, "t");
    agent.run(&format!(
        "touch begun; {}; echo late > a.txt; touch wrote",
        wait_for("go")
    ));
    exists(&world, "begun");
    // It was seen, and is not told of when it yields: as Codex has it.
    agent.say(&agent.voice.stop()).nothing();
    world.file("go", "");
    exists(&world, "wrote");
    assert!(
        is_the_commands(&world, "a.txt"),
        "{:?}",
        newest(&world, "a.txt")
    );
    // What an own command did is told once its window has ended (MOD-1).
    let mut told = String::new();
    until("it is told", || {
        let heard = agent.say(&agent.voice.prompt("q", "well?"));
        let Heard::Told(text) = heard else {
            return false;
        };
        told = text;
        true
    });
    let by_it = r#""a.txt" (modified while your command ran, by the command or by another author"#;
    assert!(told.contains(by_it), "{told}");
    agent.end();
}

#[test]
fn attr6_of_two_commands_side_by_side_each_has_its_time() {
    let world = World::new();
    let mut agent = agent(&world, &["a.txt", "b.txt"]);
    announce(&mut agent, "one");
    announce(&mut agent, "two");
    agent.run("echo one > a.txt; touch one");
    agent.run(&format!("{}; echo two > b.txt; touch two", wait_for("go")));
    exists(&world, "one");
    come_back(&mut agent, "one");
    world.file("go", "");
    exists(&world, "two");
    come_back(&mut agent, "two");
    assert!(is_the_commands(&world, "a.txt"));
    assert!(is_the_commands(&world, "b.txt"));
    agent.end();
}

#[test]
fn attr6_what_an_editor_saves_in_a_commands_time_is_the_users() {
    let world = World::new();
    let mut agent = agent(&world, &["a.txt"]);
    announce(&mut agent, "t");
    agent.run(&format!("touch begun; {}", wait_for("go")));
    exists(&world, "begun");
    user::write(&world.path("a.txt"), "the user's\n");
    let hash =
        world.client().ok("file/history", json!({"path": "a.txt"}))["versions"][0]["hash"].clone();
    world
        .client()
        .ok("editor/didSave", json!({"path": "a.txt", "hash": hash}));
    assert_eq!(newest(&world, "a.txt"), (Value::Null, "editor".to_owned()));
    world.file("go", "");
    come_back(&mut agent, "t");
    assert_eq!(newest(&world, "a.txt"), (Value::Null, "editor".to_owned()));
    agent.end();
}

#[test]
fn attr6_an_agents_own_git_is_not_the_user() {
    let world = World::new();
    world.file("a.txt", TEXT);
    let git = [
        "init -q",
        "add a.txt",
        "-c user.name=t -c user.email=t@t commit -qm one",
    ];
    for arguments in git {
        let mut git = Command::new("git");
        git.args(arguments.split(' '))
            .current_dir(world.workspace());
        assert!(git.status().unwrap().success());
    }
    let mut agent = agent(&world, &["a.txt"]);
    let edit = agent.voice.before_edit("e", "a.txt", "two", "2");
    agent.say(&edit).nothing();
    std::fs::write(world.path("a.txt"), "one\n2\nthree\n").unwrap();
    let edited = agent.voice.after_edit("e", "a.txt", "two", "2");
    agent.say(&edited).nothing();
    let run = |agent: &mut Agent<'_>, call: &str, command: &str| {
        announce(agent, call);
        agent.run(&format!("{command}; touch done-{call}"));
        exists(&world, &format!("done-{call}"));
        agent.say(&agent.voice.after_shell(call, command, ""))
    };
    let name = "git -c user.name=t -c user.email=t@t";
    let heard = run(
        &mut agent,
        "stash",
        &format!("{name} stash -q; {name} stash pop -q"),
    );
    heard.nothing();
    agent.say(&agent.voice.prompt("q", "go on")).nothing();
    let told = run(&mut agent, "back", "git checkout -q -- a.txt").told();
    assert!(
        told.contains("your edit of line 2 was taken back)")
            || told.contains("your edit of lines 2 was taken back)")
            || told.contains("your edit was taken back)"),
        "{told}"
    );
    for no in ["user", "outside", "claude-1"] {
        assert!(!told.contains(no), "{told}");
    }
    agent.end();
}
