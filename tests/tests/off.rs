//! OFF: touchmark does nothing for a while, as the user alone wishes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::hooks::agent::Agent;
use touchmark_tests::hooks::{self, Heard, Talk};
use touchmark_tests::process::until;
use touchmark_tests::world::binary;
use touchmark_tests::{World, user};

const TEXT: &str = "one\ntwo\nthree\n";

/// Returns what a command prints, without line breaks. It must succeed.
fn said(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    let both = [output.stdout, output.stderr].concat();
    let both = String::from_utf8(both).unwrap();
    both.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns who made the newest version of a file.
fn author(world: &World, path: &str) -> Value {
    let history = world.client().ok("file/history", json!({"path": path}));
    history["versions"][0]["author"]["kind"].clone()
}

/// The user appends a line to `a.txt`, then the agent's tool announces that it
/// will replace that file.
fn gate(talk: &mut Talk<'_>) -> Heard {
    let call = talk.call();
    user::append(&talk.world.path("a.txt"), &format!("mine {call}\n"));
    talk.say(&talk.voice.before_write(&call, "a.txt", "all new\n"))
}

fn world() -> World {
    let world = World::new();
    world.file("a.txt", TEXT);
    world
}

#[test]
fn off2_a_pause_lets_everything_pass_and_loses_only_what_happens_in_it() {
    for agent in ["claude", "gemini", "opencode"] {
        let world = world();
        let path = world.path("a.txt");
        let mut talk = Talk::new(&world, agent, "s");
        talk.start().nothing();
        talk.read("a.txt").nothing();
        user::replace(&path, "one\n2\nthree\n");
        assert_eq!(author(&world, "a.txt"), "user");
        gate(&mut talk).denied();
        assert_eq!(author(&world, "a.txt"), "user");

        let paused = said(&world, &["pause"]);
        assert!(paused.contains("`touchmark resume` ends it"), "{paused}");
        gate(&mut talk).nothing();
        assert_eq!(author(&world, "a.txt"), "unknown");
        for args in [&["status"][..], &["doctor"], &["log"]] {
            let text = said(&world, args);
            assert!(text.contains("you have paused touchmark here"), "{text}");
        }
        let status = world.client().ok("status", json!({}));
        assert_eq!(status["off"]["off"]["cause"], "paused");

        user::replace(&path, "one\n2\n3\nfour\n");
        said(&world, &["resume"]);
        assert_eq!(author(&world, "a.txt"), "unknown");
        user::replace(&path, "one\n2\n3\nfour\nfive\n");
        assert_eq!(author(&world, "a.txt"), "user");
        gate(&mut talk).denied();
        assert!(!said(&world, &["status"]).contains("paused"));
        let log = said(&world, &["log", "a.txt"]);
        assert!(log.contains("unknown") && log.contains("you"), "{log}");
    }
}

#[test]
fn off2_a_pause_ends_by_itself_and_may_be_of_all_workspaces() {
    let (world, other) = (world(), world());
    let mut talk = Talk::new(&world, "claude", "s");
    gate(&mut talk).denied();
    let begun = std::time::Instant::now();
    let text = said(&world, &["pause", "--for", "2s"]);
    assert!(text.contains("ends after 2 s"), "{text}");
    if begun.elapsed().as_secs() < 1 {
        gate(&mut talk).nothing();
    }
    until("the pause is over", || gate(&mut talk) != Heard::Nothing);
    assert!(!said(&world, &["doctor"]).contains("paused"));

    // The same user, who works in another directory.
    let mut all = Command::new(binary());
    world.dress(&mut all);
    all.args(["pause", "--all"]).current_dir(other.workspace());
    assert!(all.status().unwrap().success());
    gate(&mut talk).nothing();
    let text = said(&world, &["status"]);
    assert!(text.contains("in all workspaces"), "{text}");
    assert_eq!(world.run(&["resume"]).status.code(), Some(1));
    let mut resume = Command::new(binary());
    world.dress(&mut resume);
    assert!(resume.args(["resume", "--all"]).status().unwrap().success());
    gate(&mut talk).denied();
    for wrong in ["0s", "soon", "1"] {
        assert_eq!(world.run(&["pause", "--for", wrong]).status.code(), Some(2));
    }
}

#[test]
fn off2_a_pause_needs_no_daemon_and_survives_one() {
    let mut world = World::asleep();
    fs::create_dir(world.path(".git")).unwrap();
    world.file("a.txt", TEXT);
    said(&world, &["pause"]);
    gate(&mut Talk::new(&world, "claude", "one")).nothing();
    assert_eq!(world.left_behind(), Vec::<String>::new());
    let status = world.run(&["status"]);
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(text.contains("you have paused touchmark here"), "{text}");
    world.start();
    gate(&mut Talk::new(&world, "claude", "two")).nothing();
    said(&world, &["resume"]);
    gate(&mut Talk::new(&world, "claude", "three")).denied();
}

#[test]
fn off1_a_listed_directory_is_the_users_choice_and_no_repositorys() {
    let mut world = World::asleep();
    world.file("a.txt", TEXT);
    let above = world.workspace().parent().unwrap().to_owned();
    let line = |directory: &Path| format!("off = [{:?}]\n", directory.display());
    world.configure(&line(&above));
    world.start();
    gate(&mut Talk::new(&world, "claude", "one")).nothing();
    let text = said(&world, &["status"]);
    assert!(text.contains("`off` in your configuration"), "{text}");
    assert!(said(&world, &["doctor"]).contains("`off` in your configuration"));

    world.stop();
    world.configure("");
    fs::write(world.path(".touchmark.toml"), line(&above)).unwrap();
    world.start();
    gate(&mut Talk::new(&world, "claude", "two")).denied();
    let doctor = world.run(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(text.contains("off"), "{text}");
    assert_eq!(doctor.status.code(), Some(1));
}

#[test]
fn off3_the_variable_counts_only_if_the_agent_was_started_with_it() {
    let mut world = world();
    world.set_env("TOUCHMARK_BYPASS", "1");
    // The hook has it, from a repository's settings perhaps; the agent, which is
    // this process here, has not.
    let mut talk = Talk::new(&world, "claude", "s");
    gate(&mut talk).denied();
    let text = said(&world, &["status"]);
    assert!(text.contains("refused TOUCHMARK_BYPASS"), "{text}");
    assert!(text.contains("was started without it"), "{text}");

    let mut agent = Agent::claude(&world, "run");
    let event = agent.voice.before_write("w", "a.txt", "all new\n");
    agent.say(&event).nothing();
    for args in [&["status"][..], &["doctor"]] {
        let text = said(&world, args);
        assert!(text.contains("was started with TOUCHMARK_BYPASS"), "{text}");
    }
    agent.end();
    until("the run is over", || {
        !said(&world, &["status"]).contains("was started with TOUCHMARK_BYPASS")
    });
    // Nor does it count in the shell in which an agent runs a hook.
    user::append(&world.path("a.txt"), "mine, too\n");
    let event = talk
        .voice
        .before_write("x", "a.txt", "all new\n")
        .to_string();
    let mut shell = Command::new("sh");
    let hook = format!("{} hook claude; true", binary().display());
    shell.args(["-c", &hook]).current_dir("/");
    world.dress(&mut shell);
    shell.env("TOUCHMARK_HOOK_MS", "30000");
    let output = hooks::feed(shell, event.as_bytes());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("deny"), "{text}");
}

#[test]
fn off4_what_the_user_allows_passes_once() {
    let world = world();
    let mut talk = Talk::new(&world, "claude", "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    assert_eq!(world.run(&["allow", "a.txt"]).status.code(), Some(4));
    user::replace(&world.path("a.txt"), "one\n2\nthree\n");
    // Without an acknowledgement each denial is the first.
    let strict = |talk: &mut Talk<'_>| talk.before_edit("a.txt", "two", "zwei").1;
    strict(&mut talk).denied();
    let text = said(&world, &["allow", "a.txt"]);
    assert!(
        text.contains("the next write of claude-1 to a.txt passes"),
        "{text}"
    );
    assert!(said(&world, &["status"]).contains("the next write of claude-1 to a.txt"));
    assert_eq!(strict(&mut talk), Heard::Nothing);
    assert!(!said(&world, &["status"]).contains("the next write of"));
    user::replace(&world.path("a.txt"), "one\nzwo\nthree\n");
    strict(&mut talk).denied();
    let another = Talk::new(&world, "claude", "other").before_write("a.txt", "new\n");
    another.1.denied();
}

/// Runs a command below an agent's process, and returns what it prints.
fn below(agent: &mut Agent<'_>, args: &str) -> String {
    let file = agent.world.outside().join("said");
    let _not_there = fs::remove_file(&file);
    let (program, place) = (binary(), agent.world.workspace().to_owned());
    let (program, place, out) = (program.display(), place.display(), file.display());
    agent.run(&format!(
        "{program} --workspace {place} {args} > {out}.part 2>&1; echo \"code $?\" >> {out}.part; mv {out}.part {out}"
    ));
    until("the command has run", || file.exists());
    let text = fs::read_to_string(&file).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn off5_an_agent_cannot_do_it_and_the_user_sees_that_it_tried() {
    let world = world();
    let mut agent = Agent::claude(&world, "agent");
    agent.begin();
    let event = agent.voice.before_write("w", "a.txt", "all new\n");
    agent.say(&event).denied();
    for (args, named) in [
        ("pause", "touchmark pause"),
        ("pause --for 1h", "touchmark pause"),
        ("resume", "touchmark resume"),
        ("allow a.txt", "touchmark allow"),
        ("call hook/allow '{\"path\":\"a.txt\"}'", "touchmark allow"),
    ] {
        let text = below(&mut agent, args);
        assert!(text.contains("only the user may do that"), "{args}: {text}");
        assert!(text.ends_with("code 4"), "{args}: {text}");
        for asked in [&["status"][..], &["doctor"], &["log"]] {
            let told = said(&world, asked);
            assert!(told.contains(&format!("{named},")), "{asked:?}: {told}");
        }
    }
    let status = world.client().ok("status", json!({}));
    assert_eq!(status["off"]["off"], Value::Null, "{status}");
    assert_eq!(status["off"]["allowed"], json!([]), "{status}");
    agent.end();

    // The user can.
    said(&world, &["pause"]);
    said(&world, &["resume"]);

    // A program of an agent's name needs no hooks to be one.
    let program = world.outside().join("claude");
    let script = format!("#!/bin/sh\n{} \"$@\"\necho done\n", binary().display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for variable in [None, Some("CLAUDECODE")] {
        let mut command = match variable {
            None => Command::new(&program),
            Some(_) => Command::new(binary()),
        };
        command
            .args(["--workspace"])
            .arg(world.workspace())
            .arg("pause");
        world.dress(&mut command);
        command.envs(variable.map(|name| (name, "1")));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("only the user may do that"), "{text}");
    }
    assert!(!said(&world, &["status"]).contains("you have paused"));
}
