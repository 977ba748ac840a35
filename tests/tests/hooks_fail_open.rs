//! A hook never blocks its agent: whatever fails, it prints `{}` and exits with
//! 0.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use touchmark_tests::hooks::voice::agents;
use touchmark_tests::hooks::{self, Talk, Voice, feed, printed, run, schema, voice};
use touchmark_tests::mutate::{Random, changed_bytes, changed_params};
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{World, user};

/// Creates a world where no directory above is a workspace.
fn apart() -> World {
    World::asleep_in(&std::env::temp_dir())
}

fn awake_apart() -> World {
    let mut world = apart();
    world.start();
    world
}

fn silent(world: &World, agent: &str, event: &Value) {
    let output = run(world, agent, event.to_string().as_bytes(), false);
    assert_eq!(printed(&output), json!({}), "{agent}");
}

#[test]
fn without_a_daemon_nothing_is_said_and_none_started_where_no_workspace_is() {
    let world = apart();
    for agent in agents() {
        for event in Voice::new(agent, "s", world.workspace()).all() {
            silent(&world, agent, &event);
        }
    }
    assert_eq!(world.left_behind(), Vec::<String>::new());
}

#[test]
fn a_stopped_daemon_holds_nobody_up() {
    let world = World::new();
    world.file("a.txt", "one\n");
    let talk = Talk::new(&world, "claude", "s");
    let pid = Pid::from_raw(i32::try_from(world.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let denied = talk.voice.before_write("1", "a.txt", "1\n");
    silent(&world, "claude", &denied);
    kill_process(pid, Signal::CONT).unwrap();
    // An event that was not waited for has had no effect.
    assert_eq!(world.client().ok("status", json!({}))["openEdits"], 0);
    assert!(talk.say(&denied).denied().contains("has not been read"));
}

#[test]
fn an_agent_that_does_not_speak_is_not_waited_for() {
    let world = World::new();
    let mut command = Command::new(binary());
    command.args(["hook", "claude"]);
    world.dress(&mut command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let silent_agent = child.stdin.take();
    let output = finish(child, "a hook without an event");
    assert_eq!(printed(&output), json!({}));
    drop(silent_agent);
}

#[test]
fn an_agent_that_does_not_read_is_not_waited_for() {
    let mut world = World::new();
    let (unread, mut full) = io::pipe().unwrap();
    fcntl_setfl(&full, OFlags::NONBLOCK).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    let mut command = Command::new(binary());
    command.args(["hook", "claude"]);
    world.dress(&mut command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let event = Voice::new("claude", "s", world.workspace()).start("startup");
    let mut input = child.stdin.take().unwrap();
    input.write_all(event.to_string().as_bytes()).unwrap();
    drop(input);
    let output = finish(child, "a hook whose output is not read");
    assert!(output.status.success(), "{output:?}");
    drop(unread);
    world.healthy();
}

#[test]
fn without_a_home_nothing_is_said() {
    let world = apart();
    let mut command = Command::new(binary());
    command.args(["hook", "claude"]).env_clear();
    let event = Voice::new("claude", "s", world.workspace()).start("startup");
    let output = feed(command, event.to_string().as_bytes());
    assert_eq!(printed(&output), json!({}));
}

#[test]
fn what_is_no_event_is_answered_like_nothing() {
    let mut world = awake_apart();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = json!({"cwd": world.workspace(), "session_id": "s",
        "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": {"file_path": world.path("l.txt"), "content": "x".repeat(5 << 20)}});
    let larger = json!({"cwd": world.workspace(), "x": "x".repeat(17 << 20)});
    for bytes in [
        b"".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"{\"cwd\":".to_vec(),
        deep.into_bytes(),
        json!({"cwd": world.workspace()}).to_string().into_bytes(),
        json!({"cwd": world.workspace(), "hook_event_name": "Unheard", "session_id": "s"})
            .to_string()
            .into_bytes(),
        json!({"cwd": world.workspace(), "hook_event_name": 7, "session_id": ["s"]})
            .to_string()
            .into_bytes(),
        larger.to_string().into_bytes(),
    ] {
        for agent in ["claude", "opencode"] {
            assert_eq!(printed(&run(&world, agent, &bytes, false)), json!({}));
        }
    }
    let output = run(&world, "claude", large.to_string().as_bytes(), true);
    assert_eq!(printed(&output), json!({}));
    assert_eq!(
        world.client().ok("status", json!({}))["openEdits"],
        1,
        "megabytes are an event like any other"
    );
    world.healthy();
}

#[test]
fn files_outside_every_workspace_pass_in_silence() {
    let world = awake_apart();
    let outside = world.outside().join("x.txt");
    user::write(&outside, "one\n");
    let path = outside.to_str().unwrap();
    for agent in agents() {
        let voice = Voice::new(agent, "s", world.workspace());
        silent(&world, agent, &voice.before_edit("1", path, "one", "1"));
        silent(&world, agent, &voice.after_edit("1", path, "one", "1"));
    }
    assert_eq!(world.client().ok("status", json!({}))["trackedFiles"], 0);
}

#[test]
fn a_workspace_gets_a_daemon_with_its_first_event() {
    let world = World::asleep();
    std::fs::create_dir(world.path(".git")).unwrap();
    world.file("a.txt", "one\n");
    let talk = Talk::new(&world, "claude", "s");
    talk.start().nothing();
    let (_, heard) = { talk }.before_write("a.txt", "1\n");
    assert!(heard.denied().contains("has not been read"));
    world.client().ok("shutdown", json!({}));
}

/// Events with fields that are missing, renamed, doubled or filled with odd
/// values.
#[test]
fn an_event_that_is_almost_right_is_answered_by_the_schema_or_not_at_all() {
    let mut world = awake_apart();
    world.file("a.txt", "one\n");
    let mut client = world.client();
    for (number, agent) in agents().into_iter().enumerate() {
        let mut random = Random::new(7 + number as u64);
        let events = Voice::new(agent, "s", world.workspace()).all();
        for round in 0..40 {
            for event in &events {
                let input = match round {
                    0 => event.clone(),
                    _ => changed_params(event, &mut random),
                };
                let event = json!({"agent": voice::hook(agent), "input": input});
                let answer = client.call("hook/event", event);
                let Ok(answer) = answer else {
                    // What is too deep or too large for any message.
                    continue;
                };
                // A denial on standard error.
                if answer["exit"] == 2 {
                    assert!(voice::of(agent).get("denied").is_none(), "{answer}");
                    assert_ne!(answer["stderr"], "", "{answer}");
                    continue;
                }
                assert_eq!(answer["exit"], 0, "{answer}");
                assert_eq!(answer["stderr"], "", "{answer}");
                let text = touchmark_tests::text(&answer, "stdout");
                let printed: Value = serde_json::from_str(&text).unwrap();
                let name = voice::event_name(agent, &input);
                if printed != json!({}) {
                    schema::check(agent, name, &printed);
                    hooks::heard(agent, &printed);
                }
            }
        }
    }
    // Bytes, by the real hook.
    let mut random = Random::new(3);
    for agent in agents() {
        for event in Voice::new(agent, "s", world.workspace()).all() {
            let mut bytes = event.to_string().into_bytes();
            changed_bytes(&mut bytes, &mut random);
            let _an_object = printed(&run(&world, agent, &bytes, false));
        }
    }
    world.healthy();
}
