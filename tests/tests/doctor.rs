//! `touchmark doctor`, `audit` and `logs`: problems are named, with what to do.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use touchmark_tests::hooks::{Voice, printed, run};
use touchmark_tests::world::finish;
use touchmark_tests::{World, parts};

/// Returns the checks with the level `wrong`. Each must have a hint, and the
/// exit code must match.
fn wrong(output: &Output) -> Vec<(String, String)> {
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let wrong: Vec<(String, String)> = said["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["level"] == "wrong")
        .map(|check| {
            assert_ne!(check["hint"], "", "{check}");
            (text(&check["check"]), text(&check["says"]))
        })
        .collect();
    assert_eq!(said["wrong"], wrong.len(), "{said}");
    assert_eq!(output.status.code(), Some(i32::from(!wrong.is_empty())));
    wrong
}

fn examined(world: &World) -> Vec<(String, String)> {
    wrong(&world.run(&["doctor", "--json"]))
}

/// Checks that exactly these checks have the level `wrong`. Returns their
/// texts.
fn only(world: &World, checks: &[&str]) -> Vec<String> {
    let (names, says): (Vec<String>, Vec<String>) = examined(world).into_iter().unzip();
    assert_eq!(names, checks, "{says:?}");
    says
}

fn mode(path: &Path, mode: u32) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn all_is_well_and_nothing_is_started() {
    let mut world = World::asleep();
    only(&world, &[]);
    assert!(!world.runtime().join("touchmark").exists());
    let text = world.run(&["doctor"]);
    assert_eq!(text.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&text.stdout).contains("none runs"));
    world.start();
    only(&world, &[]);
    assert!(world.run(&["doctor", "--quiet"]).stdout.is_empty());
}

#[test]
fn what_a_killed_daemon_left_is_named_and_taken_over() {
    let mut world = World::new();
    world.kill();
    let says = only(&world, &["lock", "daemon"]);
    assert!(
        says[1].contains(&*world.socket().to_string_lossy()),
        "{says:?}"
    );
    world.start();
    only(&world, &[]);
}

#[test]
fn a_daemon_that_does_not_answer() {
    let world = World::new();
    let pid = world.pid().to_string();
    assert!(
        Command::new("kill")
            .args(["-STOP", &pid])
            .status()
            .unwrap()
            .success()
    );
    let says = only(&world, &["daemon"]);
    assert!(says[0].contains("does not answer"), "{says:?}");
    assert!(
        Command::new("kill")
            .args(["-CONT", &pid])
            .status()
            .unwrap()
            .success()
    );
    only(&world, &[]);
}

#[test]
fn directories_of_somebody_elses_or_open_to_others() {
    let world = World::asleep();
    let runtime = world.runtime().join("touchmark");
    mode(&runtime, 0o755);
    let says = only(&world, &["runtime directory"]);
    assert!(says[0].contains("755"), "{says:?}");
    mode(&runtime, 0o700);
    only(&world, &[]);
    // The workspace's own part of the state directory.
    let key = world.socket().file_stem().unwrap().to_owned();
    let state = world.state().join("touchmark").join(key);
    mode(&state, 0o750);
    only(&world, &["state directory"]);
    fs::remove_dir(&state).unwrap();
    fs::write(&state, "").unwrap();
    only(&world, &["state directory", "store"]);
}

#[test]
fn a_read_only_state_directory() {
    let world = World::asleep();
    // In a mount namespace of its own, which not every machine allows.
    let inside = format!(
        "mount -t tmpfs -o ro none {} && exec {} doctor --json --workspace {}",
        world.state().display(),
        touchmark_tests::world::binary().display(),
        world.workspace().display()
    );
    let mut command = Command::new("unshare");
    world.dress(&mut command);
    let output = command.args(["-m", "sh", "-c", &inside]).output().unwrap();
    if output.stdout.is_empty() {
        parts::not_tested(&format!(
            "a read-only state directory: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ));
        return;
    }
    let names: Vec<String> = wrong(&output).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["state directory", "state space"]);
}

#[test]
fn a_wrong_configuration_is_named_with_its_line() {
    let world = World::asleep();
    world.file(".touchmark.toml", "[marks]\n\nlate = \"soon\"\n");
    let says = only(&world, &["configuration"]);
    assert!(says[0].contains(".touchmark.toml:3: "), "{says:?}");
}

#[test]
fn a_socket_path_too_long() {
    let mut world = World::asleep();
    let long = world.runtime().join("x".repeat(120));
    world.set_env("TOUCHMARK_SOCKET", &long.to_string_lossy());
    let names: Vec<String> = examined(&world).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"socket path".to_owned()), "{names:?}");
}

#[test]
fn a_file_in_the_sockets_place() {
    let mut world = World::new();
    world.stop();
    fs::write(world.socket(), "").unwrap();
    let says = only(&world, &["socket path", "daemon"]);
    assert!(says[0].contains("no socket"), "{says:?}");
    fs::remove_file(world.socket()).unwrap();
    only(&world, &[]);
}

#[test]
fn a_daemon_without_its_lock() {
    let mut world = World::new();
    // It mends that by itself, unless it is kept from it.
    let stopped = touchmark_tests::process::Stopped::new(world.pid());
    fs::remove_file(world.lock()).unwrap();
    let says = only(&world, &["daemon"]);
    assert!(says[0].contains("does not answer"), "{says:?}");
    drop(stopped);
    world.client().ok("sync", serde_json::json!({}));
    only(&world, &[]);
    world.healthy();
}

/// Configuration in the files that the daemon does not apply: see also
/// `life.rs`.
#[test]
fn a_configuration_that_is_not_in_force() {
    let world = World::new();
    world.configure("limits.frame = \"1 MiB\"\n");
    touchmark_tests::process::signal(world.pid(), rustix::process::Signal::HUP);
    let waits = || world.client().ok("status", serde_json::json!({}))["configuration"].clone();
    while waits()["atRestart"] != serde_json::json!(["limits.frame"]) {
        touchmark_tests::user::pause(2);
    }
    // Worth knowing, not wrong.
    only(&world, &[]);
    let text = world.run(&["doctor"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("configuration in force"), "{text}");
    world.configure("nonsense = 1\n");
    touchmark_tests::process::signal(world.pid(), rustix::process::Signal::HUP);
    while waits()["refused"].is_null() {
        touchmark_tests::user::pause(2);
    }
    let says = only(&world, &["configuration", "configuration in force"]);
    assert!(says[1].contains("nonsense"), "{says:?}");
}

#[test]
fn a_damaged_store() {
    let mut world = World::new();
    world.file("f", "one\n");
    world.session("s").read("f");
    world.stop();
    let key = world.socket().file_stem().unwrap().to_owned();
    let store = world.state().join("touchmark").join(key).join("store.db");
    let mut bytes = fs::read(&store).unwrap();
    let whole = bytes.clone();
    for byte in bytes.iter_mut().skip(4096) {
        *byte ^= 0x55;
    }
    fs::write(&store, &bytes).unwrap();
    only(&world, &["store"]);
    fs::write(
        &store,
        b"no store at all, but long enough to look like something",
    )
    .unwrap();
    only(&world, &["store"]);
    fs::write(&store, whole).unwrap();
    only(&world, &[]);
}

#[test]
fn an_audit_finds_what_made_no_event() {
    if Command::new("python3").arg("--version").output().is_err() {
        parts::not_tested("a store through a memory map: python3 is not here");
        return;
    }
    let world = World::new();
    world.file("f", "one\n");
    world.session("s").read("f");
    let audited = world.run(&["audit"]);
    assert_eq!(audited.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&audited.stdout).contains("1 file"));
    let map = "import mmap, sys\nf = open('f', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\n\
               m[0:3] = b'two'\nm.flush()\nprint('written', flush=True)\nsys.stdin.read()";
    let mut mapping = Command::new("python3")
        .args(["-c", map])
        .current_dir(world.workspace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(mapping.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "written\n");
    let audited = world.run(&["audit", "--json"]);
    assert_eq!(audited.status.code(), Some(1));
    let facts: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert_eq!(facts["checked"], 1, "{facts}");
    assert_eq!(facts["differences"][0]["path"], "f", "{facts}");
    // What was found is on record.
    assert_eq!(world.session("s").state("f"), "stale");
    assert_eq!(world.run(&["audit"]).status.code(), Some(0));
    drop(mapping.stdin.take());
    finish(mapping, "python3");
}

#[test]
fn the_log_is_printed_and_followed() {
    let world = World::asleep();
    let none = world.run(&["logs"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(world.run(&["start"]).status.success());
    let log = world.run(&["logs"]);
    assert_eq!(log.status.code(), Some(0));
    let text = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(text.contains("serves"), "{text}");

    let mut follow = world
        .command(&["logs", "-f"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("serves"));
    assert!(world.run(&["stop"]).status.success());
    assert!(lines.any(|line| line.unwrap().contains("ending")));
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn an_agent_whose_tools_or_events_are_not_recognised_is_broken() {
    let mut world = World::asleep();
    world.start();
    world.file("a.txt", "one\n");
    let voice = Voice::new("copilot-cli", "s", world.workspace());
    let say = |hook: &str, event: &Value| {
        let output = run(&world, hook, event.to_string().as_bytes(), true);
        assert_eq!(printed(&output), json!({}), "{event}");
    };
    let tool = |name: &str, input: Value| {
        voice.event(
            "PreToolUse",
            json!({"tool_name": name, "tool_input": input}),
        )
    };
    say("copilot", &voice.start("startup"));
    say("copilot", &tool("Grep", json!({"pattern": "one"})));
    only(&world, &[]);
    // A tool with another name, or a known one with other arguments.
    for unknown in [
        tool("Peruse", json!({"path": "a.txt"})),
        tool("Read", json!({"document": "a.txt"})),
    ] {
        say("copilot", &unknown);
        let says = only(&world, &["copilot"]);
        assert!(
            says[0].contains("none of its tools is recognised"),
            "{says:?}"
        );
    }
    assert!(only(&world, &["copilot"])[0].contains("Read has no filePath"));
    // One that is known: the agent is tracked, and the rest is a note.
    say("copilot", &voice.before_read("1", "a.txt"));
    only(&world, &[]);
    let text = world.run(&["doctor"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("2 events were not understood in full"),
        "{text}"
    );

    say(
        "droid",
        &json!({"hook_event_name": "Novel", "session_id": "d", "cwd": world.workspace()}),
    );
    let says = only(&world, &["droid"]);
    assert!(
        says[0].contains("none of its events is understood"),
        "{says:?}"
    );
    assert!(says[0].contains("Novel"), "{says:?}");
}
