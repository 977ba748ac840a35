//! ATTR-3: the witness of an agent's shell commands, and of a whole agent.

use std::path::Path;

use serde_json::{Value, json};
use touchmark_tests::hooks::agent::{Agent, session, wait_for};
use touchmark_tests::process::until;
use touchmark_tests::world::binary;
use touchmark_tests::{World, parts, text, user};

/// Returns each version of a file as its author's kind and its evidence, newest
/// first. A corrected version has its corrected author.
fn log(world: &World, path: &str) -> Vec<String> {
    let log = world.client().ok("file/log", json!({"paths": [path]}));
    let row = |entry: &Value| {
        let version = &entry["version"];
        let evidence = text(version, "evidence");
        format!("{} {evidence}", text(&version["author"], "kind"))
    };
    log["entries"].as_array().unwrap().iter().map(row).collect()
}

/// Returns what witnesses have seen of the agent's commands.
fn seen(world: &World) -> Value {
    world.client().ok("status", json!({}))["witnessed"].clone()
}

/// Returns whether commands are witnessed here, and says it if that cannot be.
fn is_witnessed(world: &World) -> bool {
    let seen = seen(world);
    if seen[0]["incomplete"] == 0 {
        return true;
    }
    let probe = world.run(&["run", "--witness", "--session", "probe", "--", "true"]);
    let said = String::from_utf8_lossy(&probe.stderr);
    assert!(said.contains("not all writes were seen"), "{seen}");
    parts::not_tested(&format!("witnessed commands: {said}"));
    false
}

/// Returns what the file that `touchmark setup --witness` writes runs for a
/// command.
fn through_prefix(command: &str) -> String {
    let hook = binary().with_file_name("touchmark-hook");
    let line = format!(
        "true && eval '{}' < /dev/null",
        command.replace('\'', r"'\''")
    );
    let line = line.replace('\'', r"'\''");
    format!("exec {} claude shell /bin/sh '{line}'", hook.display())
}

fn read(agent: &mut Agent<'_>, files: &[&str]) {
    agent.begin();
    for file in files {
        agent.world.file(file, "base\n");
        agent.read(file);
    }
}

fn announce(agent: &mut Agent<'_>, call: &str, command: &str) {
    agent
        .say(&agent.voice.before_shell(call, command))
        .nothing();
}

fn come_back(agent: &mut Agent<'_>, call: &str, command: &str) {
    agent.say(&agent.voice.after_shell(call, command, ""));
}

fn exists(path: &Path) {
    until("the command has come so far", || path.exists());
}

#[test]
fn a_command_that_the_shells_prefix_runs_is_witnessed() {
    let world = World::new();
    let mut agent = Agent::claude(&world, &session(&world));
    read(&mut agent, &["own.txt", "users.txt"]);
    let command = format!(
        "touch \"begun\"; {}; sed -i '$a own' own.txt; touch made",
        wait_for("go")
    );
    announce(&mut agent, "t", &command);
    agent.run(&through_prefix(&command));
    exists(&world.path("begun"));
    user::write(&world.path("users.txt"), "base\nuser\n");
    world.file("go", "");
    exists(&world.path("made"));
    come_back(&mut agent, "t", &command);
    if is_witnessed(&world) {
        assert_eq!(log(&world, "users.txt")[0], "user unmarked");
        assert_eq!(log(&world, "own.txt")[0], "agent process");
        assert_eq!(seen(&world)[0]["commands"], 1);
    }
    agent.end();
}

#[test]
fn what_no_hook_has_announced_runs_as_it_is() {
    let world = World::new();
    let mut agent = Agent::claude(&world, &session(&world));
    read(&mut agent, &["own.txt"]);
    announce(&mut agent, "t", "make all");
    // Another command, one that is not after `eval`, and a hook's: it does not
    // lead a session of the system's.
    let plain = through_prefix("make all").replace("eval", "echo");
    for (n, script) in [
        through_prefix("echo one > said; exit 7"),
        format!("{plain} > said"),
        format!(
            "sh -c \"{}\"",
            through_prefix("make all; true").replace('"', "\\\"")
        ),
    ]
    .iter()
    .enumerate()
    {
        agent.run(&format!("({script}); echo $? > ended-{n}"));
        exists(&world.path(format!("ended-{n}")));
    }
    let ended = std::fs::read_to_string(world.path("ended-0")).unwrap();
    assert_eq!(ended, "7\n");
    come_back(&mut agent, "t", "make all");
    assert_eq!(seen(&world), json!([]));
    agent.end();
}

#[test]
fn two_commands_at_once_have_a_witness_each() {
    let world = World::new();
    let mut agent = Agent::claude(&world, &session(&world));
    read(&mut agent, &["one.txt", "two.txt", "users.txt"]);
    let command = |name: &str| {
        let wait = wait_for("go");
        format!("touch begun-{name}; {wait}; sed -i '$a own' {name}.txt; touch made-{name}")
    };
    for name in ["one", "two"] {
        announce(&mut agent, name, &command(name));
    }
    for name in ["two", "one"] {
        agent.run(&through_prefix(&command(name)));
        exists(&world.path(format!("begun-{name}")));
    }
    user::write(&world.path("users.txt"), "base\nuser\n");
    world.file("go", "");
    for name in ["one", "two"] {
        exists(&world.path(format!("made-{name}")));
        come_back(&mut agent, name, &command(name));
    }
    if is_witnessed(&world) {
        assert_eq!(log(&world, "users.txt")[0], "user unmarked");
        assert_eq!(log(&world, "one.txt")[0], "agent process");
        assert_eq!(log(&world, "two.txt")[0], "agent process");
        assert_eq!(seen(&world)[0]["commands"], 2);
    }
    agent.end();
}

#[test]
fn what_goes_on_after_its_command_has_the_commands_witness() {
    let world = World::new();
    let mut agent = Agent::claude(&world, &session(&world));
    read(&mut agent, &["own.txt", "users.txt"]);
    let command = format!(
        "({}; echo own >> own.txt; touch wrote; {}) & touch back",
        wait_for("go"),
        wait_for("end")
    );
    announce(&mut agent, "t", &command);
    agent.run(&through_prefix(&command));
    exists(&world.path("back"));
    come_back(&mut agent, "t", &command);
    let can = is_witnessed(&world);
    user::write(&world.path("users.txt"), "base\nuser\n");
    world.file("go", "");
    exists(&world.path("wrote"));
    if can {
        assert_eq!(log(&world, "users.txt")[0], "user unmarked");
        // Its process has outlived the command.
        assert_eq!(log(&world, "own.txt")[0], "agent command");
    }
    world.file("end", "");
    agent.end();
}

#[test]
fn a_witnessed_agents_commands_are_witnessed() {
    let world = World::new();
    let mut agent = Agent::witnessed(&world, "claude", &session(&world));
    read(&mut agent, &["own.txt", "again.txt", "users.txt"]);
    for (call, file) in [("t", "own.txt"), ("u", "again.txt")] {
        let command = format!(
            "touch begun-{call}; {}; sed -i '$a own' {file}; touch made-{call}",
            wait_for(&format!("go-{call}"))
        );
        announce(&mut agent, call, &command);
        agent.run(&command);
        exists(&world.path(format!("begun-{call}")));
        user::write(&world.path("users.txt"), &format!("base\nuser {call}\n"));
        world.file(&format!("go-{call}"), "");
        exists(&world.path(format!("made-{call}")));
        come_back(&mut agent, call, &command);
        if !is_witnessed(&world) {
            break;
        }
        assert_eq!(log(&world, "users.txt")[0], "user unmarked");
        assert_eq!(log(&world, file)[0], "agent process");
    }
    agent.end();
}
