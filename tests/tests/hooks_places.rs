//! Which file a hook's event names: by links, relative names, and in a nested
//! repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::hooks::{Talk, feed};
use touchmark_tests::world::binary;
use touchmark_tests::{World, user};

const AGENT: &str = "claude";
const TEXT: &str = "one\ntwo\n";

/// Returns the event with another name for the file.
fn named(event: &Value, path: &str) -> Value {
    let mut event = event.clone();
    event["tool_input"]["file_path"] = json!(path);
    event
}

#[test]
fn a_workspace_that_the_agent_came_to_by_a_link_is_that_workspace() {
    let mut world = World::new();
    world.file("a.txt", TEXT);
    let link = world.outside().join("link");
    symlink(world.workspace(), &link).unwrap();
    let by_link = link.join("a.txt");
    let by_link = by_link.to_str().unwrap();
    for (cwd, path) in [
        (&link, by_link),
        (&link, "a.txt"),
        (&world.workspace().to_owned(), by_link),
    ] {
        let mut talk = Talk::new(&world, AGENT, "s");
        talk.voice.cwd = cwd.clone();
        user::write(&world.path("a.txt"), TEXT);
        for event in [
            talk.voice.before_read("r", "a.txt"),
            talk.voice.after_read("r", "a.txt", TEXT),
        ] {
            talk.say(&named(&event, path)).nothing();
        }
        assert_eq!(world.session("s").state("a.txt"), "fresh", "{path}");
        user::write(&world.path("a.txt"), "other\n");
        let write = talk.voice.before_write("w", "a.txt", "x\n");
        let reason = talk.say(&named(&write, path)).denied();
        assert!(
            reason.contains(r#""a.txt" was changed outside any agent"#),
            "{reason}"
        );
        world
            .session("s")
            .ok("session/close", json!({"forget": true}));
    }
    world.healthy();
}

/// A file is read by one name and edited by another name of the same file.
#[test]
fn what_was_read_by_a_link_within_may_be_edited_by_the_other_name() {
    let mut world = World::new();
    world.file("lib/a.txt", TEXT);
    symlink("lib", world.path("src")).unwrap();
    let mut talk = Talk::new(&world, AGENT, "s");
    talk.start().nothing();
    talk.read("src/a.txt").nothing();
    talk.edit("lib/a.txt", "one", "1").nothing();
    talk.prompt("p1", "go on").nothing();
    assert_eq!(world.session("s").state("src/a.txt"), "fresh");
    world.healthy();
}

#[test]
fn an_edit_of_a_file_with_windows_line_ends_is_the_agents_own() {
    let mut world = World::new();
    world.file("a.txt", "one\r\ntwo\r\n");
    let mut talk = Talk::new(&world, AGENT, "s");
    talk.start().nothing();
    talk.read("a.txt").nothing();
    talk.edit("a.txt", "one", "1").nothing();
    talk.prompt("p1", "go on").nothing();
    assert_eq!(world.session("s").story("a.txt"), ["agent:s declared"]);
    world.healthy();
}

/// The agent works in the outer repository, and changes to the inner one.
#[test]
fn a_repository_within_another_has_a_daemon_of_its_own() {
    let mut world = World::new();
    for directory in [".git", "sub/.git"] {
        fs::create_dir_all(world.path(directory)).unwrap();
    }
    world.file("sub/a.txt", TEXT);
    let (outer, inner) = (world.workspace().to_owned(), world.path("sub"));
    let mut talk = Talk::new(&world, AGENT, "s");
    talk.start().nothing();
    let file = world.path("sub/a.txt");
    let file = file.to_str().unwrap();
    talk.read(file).nothing();
    for cwd in [&outer, &inner] {
        talk.voice.cwd = cwd.clone();
        let (call, heard) = talk.before_edit(file, "one", "1");
        heard.nothing();
        // Declined, as the next prompt shows.
        let _call = call;
        talk.voice.cwd = inner.clone();
        talk.prompt("p1", "no").nothing();
    }
    for cwd in [&outer, &inner] {
        user::append(&world.path("sub/a.txt"), "mine\n");
        talk.voice.cwd = cwd.clone();
        let (_, heard) = talk.before_write(file, "1\n");
        let reason = heard.denied();
        assert!(
            reason.contains(r#""a.txt" was changed outside any agent"#),
            "{reason}"
        );
    }
    let mut stop = Command::new(binary());
    stop.args(["--no-start", "stop", "--workspace"]).arg(&inner);
    world.dress(&mut stop);
    let stopped = feed(stop, b"");
    assert!(stopped.status.success(), "{stopped:?}");
    world.healthy();
}

/// SEC-6, SEC-8: where touchmark has no effect, the agent's user is told why.
#[test]
fn sec6_a_hook_says_why_a_directory_is_no_workspace() {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Stdio;
    // Where no directory above is a workspace.
    let world = World::asleep_in(&std::env::temp_dir());
    let shared = world.outside().join("shared");
    fs::create_dir_all(shared.join(".git")).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    let mut hook = Command::new(binary());
    world.dress(&mut hook);
    let mut hook = hook
        .args(["hook", AGENT])
        .env("TOUCHMARK_HOOK_MS", "60000")
        .current_dir(&shared)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": shared, "prompt": "go"});
    let mut input = hook.stdin.take().unwrap();
    input.write_all(event.to_string().as_bytes()).unwrap();
    drop(input);
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"{}\n");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains(".git is ignored: everybody may write"),
        "{told}"
    );
}
