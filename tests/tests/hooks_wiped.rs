//! HOOK-7: what an agent's shell takes away of the uncommitted work of others
//! is told to the model, shown to the user, and brought back by one command.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::hooks::{Talk, printed, run};
use touchmark_tests::user::{self, git};
use touchmark_tests::world::binary;

use crate::hooks_gate::ten;

/// Returns a workspace with a commit on `main`, another branch, and a line of
/// the user's that is in no commit.
fn world() -> World {
    let world = World::new();
    let here = world.workspace();
    git(here, &["init", "-q", "-b", "main"]);
    world.file("a.txt", ten());
    world.file("src/b.txt", ten().replace("line", "row"));
    git(here, &["add", "-A"]);
    git(here, &["commit", "-q", "-m", "one"]);
    git(here, &["branch", "other"]);
    world
}

fn saved() -> String {
    ten().replace("line 5\n", "line 5\nthe user's\n")
}

/// Runs a command of the agent, and returns what the hook printed.
fn shell(talk: &mut Talk<'_>, command: &str) -> Value {
    let call = talk.call();
    talk.say(&talk.voice.before_shell(&call, command)).nothing();
    let mut ran = Command::new("sh");
    ran.args(["-c", command])
        .current_dir(talk.world.workspace());
    for (key, value) in [("NAME", "a"), ("EMAIL", "a@example.com")] {
        ran.env(format!("GIT_AUTHOR_{key}"), value);
        ran.env(format!("GIT_COMMITTER_{key}"), value);
    }
    let output = ran.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let after = talk.voice.after_shell(&call, command, &text);
    let agent = talk.voice.agent;
    printed(&run(talk.world, agent, after.to_string().as_bytes(), true))
}

/// Runs the commands that a text names, without a terminal.
fn bring_back(world: &World, said: &str) {
    let commands = said
        .split('`')
        .filter(|part| part.starts_with("touchmark restore") || *part == "git stash pop");
    let mut any = false;
    for command in commands {
        any = true;
        let program = binary().display().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-c", &command.replacen("touchmark", &program, 1)]);
        shell.current_dir(world.workspace());
        world.dress(&mut shell);
        let done = shell.stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{command}: {done:?}");
    }
    assert!(any, "no command: {said}");
}

fn text_of(printed: &Value) -> String {
    let texts = [
        "/hookSpecificOutput/additionalContext",
        "/additional_context",
        "/append",
    ];
    let found = texts.iter().find_map(|text| printed.pointer(text));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn hook7_uncommitted_work_that_a_command_takes_away_is_told_and_comes_back() {
    for (agent, command) in [
        ("claude", "git checkout -- ."),
        ("codex", "git reset -q --hard"),
        ("gemini", "git restore a.txt"),
        ("claude", "git switch -q -f other"),
        ("claude", "git stash -q"),
        ("claude", "git stash -q && git stash drop -q"),
        ("codex", "rm a.txt"),
        ("claude", "cp src/b.txt a.txt"),
        ("cursor", "git checkout -q a.txt"),
    ] {
        let mut world = world();
        let mut talk = Talk::new(&world, agent, "s");
        talk.start().nothing();
        talk.read("a.txt").nothing();
        user::replace(&world.path("a.txt"), &saved());
        world.client().ok("sync", json!({}));
        let heard = shell(&mut talk, command);
        let told = text_of(&heard);
        assert!(
            told.contains("uncommitted work of others"),
            "{command}: {heard}"
        );
        if agent != "cursor" {
            let shown = heard["systemMessage"].as_str().unwrap_or_default();
            assert!(shown.contains("uncommitted work of others"), "{heard}");
        }
        let stays = fs::read_to_string(world.path("a.txt")).unwrap_or_default();
        bring_back(&world, &told);
        let text = fs::read_to_string(world.path("a.txt")).unwrap();
        assert!(text.contains("the user's\n"), "{command}: {text}");
        assert!(
            stays.lines().all(|line| text.contains(line)),
            "{command}: {text}"
        );
        if command.contains("checkout") || command.contains("reset") {
            assert_eq!(text, saved(), "{command}");
        }
        drop(talk);
        world.healthy();
    }
}

#[test]
fn hook7_staged_work_and_new_files_are_lost_as_well() {
    for (command, stages) in [("git reset -q --hard", true), ("git clean -q -fd", false)] {
        let mut world = world();
        let mut talk = Talk::new(&world, "claude", "s");
        talk.start().nothing();
        world.file("new.txt", "new\nfile\n");
        if stages {
            git(world.workspace(), &["add", "-A"]);
        }
        let told = text_of(&shell(&mut talk, command));
        assert!(
            told.contains("\"new.txt\" (2 lines; `touchmark restore"),
            "{command}: {told}"
        );
        let activity = world.client().ok("activity/list", json!({}));
        assert!(activity.to_string().contains("overwrote"), "{activity}");
        bring_back(&world, &told);
        assert_eq!(
            fs::read_to_string(world.path("new.txt")).unwrap(),
            "new\nfile\n"
        );
        drop(talk);
        world.healthy();
    }
}

#[test]
fn hook7_what_is_not_lost_is_not_told() {
    for command in [
        "git switch -q other",
        "git commit -q -am two && git reset -q --hard",
        "git commit -q -am two && git switch -q other",
        "git stash -q && git stash pop -q",
        "sed -i s/row/ROW/ src/b.txt",
        "git mv a.txt c.txt",
        "echo more >> a.txt",
        "sed -i 's/^/  /' a.txt",
    ] {
        let mut world = world();
        let mut talk = Talk::new(&world, "claude", "s");
        talk.start().nothing();
        talk.read("a.txt").nothing();
        user::replace(&world.path("a.txt"), &saved());
        world.client().ok("sync", json!({}));
        let heard = shell(&mut talk, command);
        assert!(
            !heard.to_string().contains("work of others"),
            "{command}: {heard}"
        );
        drop(talk);
        world.healthy();
    }
    // The session's own work is no work of others.
    let mut world = world();
    let mut talk = Talk::new(&world, "claude", "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    talk.edit("a.txt", "line 2\n", "line two\n").nothing();
    let heard = shell(&mut talk, "git checkout -- a.txt");
    assert!(!heard.to_string().contains("work of others"), "{heard}");
    drop(talk);
    world.healthy();
}
