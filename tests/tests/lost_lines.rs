//! ATTR-10: a version that a session replaced unseen is lost only if a line of
//! it that the session had not seen is on disk no more, and the command that is
//! told brings back that line and takes nothing.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::hooks::{Heard, Talk};
use touchmark_tests::world::binary;
use touchmark_tests::{World, user};

use crate::hooks_gate::{each, ten};

/// What the model receives after a tool, and with its next prompt.
fn told(talk: &mut Talk<'_>, after: &Value) -> String {
    let mut events = vec![after.clone()];
    events.extend(talk.voice.batch_end());
    events.push(talk.voice.prompt("next", "go on"));
    let said = events.iter().map(|event| match talk.say(event) {
        Heard::Told(text) => text,
        _ => String::new(),
    });
    said.collect()
}

/// Returns all that is said of losses: lists, history and activity.
fn losses(world: &World) -> usize {
    let ask = |method: &str, params: Value| world.client().ok(method, params).to_string();
    let listed = ask("modified/list", json!({"session": "s"}));
    let history = ask("file/history", json!({"path": "a.txt"}));
    let activity = ask("activity/list", json!({}));
    listed.matches("\"lost\"").count()
        + history.matches("\"overwritten\"").count()
        + activity.matches("\"overwrote\"").count()
}

/// The agent announces an edit of line 2, the user saves `saved`, then the
/// agent's tool writes `result`. Returns the text for the model.
fn save_and_write(talk: &mut Talk<'_>, saved: &str, result: &str) -> String {
    let path = talk.world.path("a.txt");
    talk.read("a.txt").nothing();
    let (call, heard) = talk.before_edit("a.txt", "line 2\n", "line two\n");
    heard.nothing();
    user::replace(&path, saved);
    talk.world.client().ok("sync", json!({}));
    user::replace(&path, result);
    let after = talk
        .voice
        .after_edit(&call, "a.txt", "line 2\n", "line two\n");
    told(talk, &after)
}

#[test]
fn attr10_a_line_that_is_on_disk_is_not_lost() {
    let saved = ten().replace("line 9\n", "the user's\n");
    let merged = saved.replace("line 2\n", "line two\n");
    let moved = format!("the user's\n{}", merged.replace("the user's\n", ""));
    let results = [merged.clone(), merged.replace('\n', "\r\n"), moved];
    each(|world, talk| {
        for (n, result) in results.iter().enumerate() {
            fs::write(world.path("a.txt"), ten()).unwrap();
            let _read_again = talk.prompt(&format!("p{n}"), "go on");
            let told = save_and_write(talk, &saved, result);
            assert!(!told.contains("unseen"), "{}: {told}", talk.voice.agent);
            assert!(!told.contains("touchmark restore"), "{told}");
            assert_eq!(losses(world), 0, "{}: {result:?}", talk.voice.agent);
        }
    });
}

#[test]
fn attr10_the_command_that_is_told_brings_the_line_back_and_takes_nothing() {
    each(|world, talk| {
        let agent = talk.voice.agent;
        let saved = ten().replace("line 9\n", "the user's\n");
        // The tool had the file in memory from before the save.
        let stale = ten().replace("line 2\n", "line two\n");
        let told = save_and_write(talk, &saved, &stale);
        assert!(
            told.contains("were overwritten by this session unseen"),
            "{agent}: {told}"
        );
        let command = told
            .split('`')
            .find(|part| part.starts_with("touchmark restore"));
        let command = command.unwrap_or_else(|| panic!("{agent}: {told}"));
        assert!(losses(world) > 0, "{agent}");

        let program = binary();
        let mut shell = Command::new("sh");
        let line = command.replacen("touchmark", &program.display().to_string(), 1);
        shell.args(["-c", &line]).current_dir(world.workspace());
        world.dress(&mut shell);
        let done = shell.stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{agent}: {done:?}");
        let text = fs::read_to_string(world.path("a.txt")).unwrap();
        let expected = stale.replace("line 9\n", "the user's\nline 9\n");
        assert_eq!(text, expected, "{agent}");
        assert_eq!(losses(world), 0, "{agent}");
        // A second time, there is nothing to do.
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{agent}: {done:?}");
        assert_eq!(fs::read_to_string(world.path("a.txt")).unwrap(), expected);
    });
}

#[test]
fn attr10_what_others_remove_later_the_session_has_not_lost() {
    each(|world, talk| {
        let saved = ten().replace("line 9\n", "the user's\n");
        let merged = saved.replace("line 2\n", "line two\n");
        let _told = save_and_write(talk, &saved, &merged);
        user::replace(&world.path("a.txt"), &merged.replace("the user's\n", ""));
        world.client().ok("sync", json!({}));
        assert_eq!(losses(world), 0, "{}", talk.voice.agent);
    });
}

#[test]
fn hist4_missing_lines_of_any_version_come_back() {
    let mut world = World::new();
    world.file("a.txt", "one\ntwo\n");
    let mut agent = world.session("s");
    agent.read("a.txt");
    user::replace(&world.path("a.txt"), "two\nthree\n");
    agent.sync();
    let history = world.client().ok("file/history", json!({"path": "a.txt"}));
    let first = history["versions"].as_array().unwrap().last().unwrap();
    let clock = first["clock"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let back = |name: &str| {
        let done = world.run(&["restore", &format!("{name}@{clock}"), "--missing"]);
        assert!(done.status.success(), "{done:?}");
    };
    back("a.txt");
    let text = || fs::read_to_string(world.path("a.txt")).unwrap();
    assert_eq!(text(), "one\ntwo\nthree\n");
    fs::remove_file(world.path("a.txt")).unwrap();
    back("a.txt");
    assert_eq!(text(), "one\ntwo\n");
    world.healthy();
}
