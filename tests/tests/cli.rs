//! The command line: exit codes, JSON, start and stop, the tour.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{World, user};

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn code(world: &World, args: &[&str], expected: i32) -> Output {
    let output = world.run(args);
    assert_eq!(
        output.status.code(),
        Some(expected),
        "touchmark {args:?}\n{}{}",
        out(&output),
        err(&output)
    );
    assert!(
        !out(&output).contains('\u{1b}'),
        "colour in spite of NO_COLOR"
    );
    output
}

fn json_of(world: &World, args: &[&str]) -> Vec<Value> {
    let output = code(world, args, 0);
    // One document, or one a line.
    serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter::<Value>()
        .map(|value| value.unwrap_or_else(|error| panic!("{error}: {}", out(&output))))
        .collect()
}

/// Stops a daemon that a command started, when dropped.
struct Stop<'w>(&'w World);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        let _ = self.0.run(&["stop"]);
    }
}

#[test]
fn the_tour_ends_by_itself() {
    let world = World::asleep();
    let mut command = world.command(&["demo"]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let output = touchmark_tests::world::finish(child, "touchmark demo");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        out(&output),
        err(&output)
    );
    assert!(out(&output).lines().count() > 5, "{}", out(&output));
    // It leaves nothing running.
    let left: Vec<_> = fs::read_dir(world.runtime().join("touchmark"))
        .map(|entries| {
            entries
                .map(|entry| entry.unwrap().file_name())
                .filter(|name| name.to_string_lossy().ends_with(".sock"))
                .collect()
        })
        .unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn call_prints_the_result_and_tells_errors_apart() {
    let world = World::new();
    world.file("a.txt", "one\n");
    assert_eq!(json_of(&world, &["call", "ping"]), [json!({})]);
    let read = json_of(
        &world,
        &[
            "call",
            "file/read",
            "{\"session\":\"s\",\"path\":\"a.txt\"}",
        ],
    );
    assert_eq!(read[0]["verdict"], "first", "{read:?}");
    let output = code(
        &world,
        &["call", "file/read", "{\"session\":\"s\",\"path\":\"none\"}"],
        4,
    );
    assert!(err(&output).contains("notFound"), "{}", err(&output));
    assert_eq!(out(&output), "");
    let output = code(&world, &["call", "no/such"], 4);
    assert!(err(&output).contains("methodNotFound"), "{}", err(&output));
    code(&world, &["call", "ping", "{not json"], 2);
    code(&world, &["no-such-command"], 2);
    code(&world, &["call"], 2);
}

#[test]
fn start_status_stop_restart() {
    let world = World::asleep();
    let _stop = Stop(&world);
    // Nothing runs, and these start nothing.
    assert_eq!(
        out(&code(&world, &["socket"], 0)).trim_end(),
        world.socket().to_str().unwrap()
    );
    assert_ne!(world.run(&["status"]).status.code(), Some(0));
    code(&world, &["call", "ping", "--no-start"], 3);
    assert!(!world.socket().exists());
    code(&world, &["start"], 0);
    let status = &json_of(&world, &["status", "--json"])[0];
    let pid = status["pid"].as_u64().unwrap();
    // A session leader with nothing of the caller's.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], pid.to_string(), "its session is its own: {stat}");
    for fd in 0..3 {
        let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).unwrap();
        assert!(
            !target.to_string_lossy().starts_with("pipe:"),
            "{fd} is {target:?}"
        );
    }
    code(&world, &["start"], 0);
    assert_eq!(json_of(&world, &["status", "--json"])[0]["pid"], pid);
    code(&world, &["restart"], 0);
    let second = json_of(&world, &["status", "--json"])[0]["pid"]
        .as_u64()
        .unwrap();
    assert_ne!(second, pid);
    code(&world, &["stop"], 0);
    assert!(!world.socket().exists());
    // On demand.
    code(&world, &["call", "ping"], 0);
    assert!(world.socket().exists());
    code(&world, &["stop"], 0);
}

#[test]
fn the_queries_print_what_is_so() {
    let world = World::new();
    let mut agent = world.session("s");
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
        agent.read(name);
    }
    user::write(&world.path("a.txt"), "two\n");
    agent.sync();
    for args in [
        vec!["modified", "--session", "s"],
        vec!["history", "a.txt"],
        vec!["sessions"],
        vec!["files", "--session", "s"],
        vec!["files", "--session", "s", "--stale"],
        vec!["status"],
    ] {
        let human = code(&world, &args, 0);
        assert_ne!(out(&human), "", "{args:?}");
        let mut with_json = args.clone();
        with_json.push("--json");
        let facts = json_of(&world, &with_json);
        let facts = Value::from(facts).to_string();
        match args[0] {
            "sessions" => assert!(facts.contains("\"s\""), "{facts}"),
            "status" => assert!(facts.contains("trackedFiles"), "{facts}"),
            _ => assert!(facts.contains("a.txt"), "{args:?}: {facts}"),
        }
        if args.contains(&"--stale") {
            assert!(!facts.contains("b.txt"), "{facts}");
        }
    }
    // Looking is not taking.
    assert_eq!(agent.taken(), ["a.txt"]);
    // A file's name is taken from where the command stands.
    world.file("sub/c.txt", "one\n");
    agent.read("sub/c.txt");
    let mut command = world.command(&["history", "c.txt", "--json"]);
    let output = command.current_dir(world.path("sub")).output().unwrap();
    assert!(
        out(&output).contains("sub/c.txt"),
        "{}{}",
        out(&output),
        err(&output)
    );
}

#[test]
fn completions_and_manual() {
    let world = World::asleep();
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&code(&world, &["completions", shell], 0));
        assert!(script.contains("touchmark"), "{shell}");
    }
    assert!(out(&code(&world, &["man"], 0)).contains(".TH"));
    assert!(!world.socket().exists());
}

/// When its reader closes the pipe, the feed ends without an error.
#[test]
fn watch_ends_with_its_reader() {
    let world = World::new();
    let mut child = world
        .command(&["watch"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut agent = world.session("s");
    world.file("a.txt", "0\n");
    agent.read("a.txt");
    let end = std::time::Instant::now() + PATIENCE;
    for number in 0.. {
        user::write(&world.path("a.txt"), &format!("{number}\n"));
        agent.sync();
        if child.try_wait().unwrap().is_some() {
            break;
        }
        if std::time::Instant::now() > end {
            child.kill().unwrap();
            panic!("it goes on without a reader");
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(!err(&output).contains("panicked"), "{}", err(&output));
}

/// A configuration file that is named but does not exist is refused.
#[test]
fn a_named_configuration_that_is_not_there_is_refused() {
    let world = World::asleep();
    let output = world.run(&["daemon", "--config", "no_such_file.toml"]);
    assert_ne!(output.status.code(), Some(0));
    let told = format!("{}{}", out(&output), err(&output));
    assert!(told.contains("no_such_file.toml"), "{told}");
}
