//! Command windows (ATTR-6) and what ends them, formatters (ATTR-17),
//! `touchmark run`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use touchmark_tests::user;
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::finish;
use touchmark_tests::{Session, World, authors, parts, paths, sha256};

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the paths that the end of a command window reports. Checks that all
/// are the session's.
fn told(ended: &Value, session: &str) -> Vec<String> {
    let changes = ended["changes"].as_array().expect("changes");
    for change in changes {
        assert_eq!(authors(change), [format!("agent:{session}")], "{change}");
        assert_eq!(change["evidence"], json!(["command"]), "{change}");
    }
    paths(changes)
}

/// Returns the last of a path's versions as `author evidence`.
fn last(session: &mut Session, name: &str) -> String {
    session.story(name).pop().unwrap_or_default()
}

/// Writes until the writes are attributed to the user again, and not to the
/// session.
fn until_the_users(world: &World, session: &mut Session, name: &str) {
    let end = Instant::now() + PATIENCE;
    for number in 0.. {
        user::write(&world.path(name), &format!("{number}\n"));
        match last(session, name).as_str() {
            "user unmarked" => return,
            own => assert_eq!(own, format!("agent:{} command", session.name)),
        }
        assert!(Instant::now() < end, "the window does not end");
        user::pause(10);
    }
}

#[test]
fn a_window_ends_with_the_process_it_names() {
    let world = World::new();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    agent.read("f");
    let mut process = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    agent.ok("command/begin", json!({"pid": process.id()}));
    user::write(&world.path("f"), "two\n");
    assert_eq!(last(&mut agent, "f"), "agent:s command");
    drop(process.stdin.take());
    process.wait().unwrap();
    until_the_users(&world, &mut agent, "f");

    // One that is gone already: a window of no length.
    agent.ok("command/begin", json!({"pid": process.id()}));
    until_the_users(&world, &mut agent, "f");
}

#[test]
fn a_bound_window_ends_with_its_connection() {
    let world = World::new();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    agent.read("f");
    let mut other = world.client();
    let begun = other.ok("command/begin", json!({"session": "s", "bind": true}));
    assert!(begun["deadline"].is_u64(), "{begun}");
    user::write(&world.path("f"), "two\n");
    assert_eq!(last(&mut agent, "f"), "agent:s command");
    drop(other);
    until_the_users(&world, &mut agent, "f");
    // No session received it at its end, so it is listed now (MOD-1).
    let taken = agent.take();
    assert_eq!(paths(&taken), ["f"]);
    assert_eq!(authors(&taken[0]), ["agent:s", "user"]);
    agent.client.refused(
        "command/end",
        json!({"command": begun["command"]}),
        "notFound",
    );
}

#[test]
fn a_window_survives_the_daemon() {
    let mut world = World::new();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    agent.read("f");
    let begun = agent.ok("command/begin", json!({}));
    world.restart();
    let mut agent = world.session("s");
    agent.sync();
    user::write(&world.path("f"), "two\n");
    let ended = agent
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    assert_eq!(told(&ended, "s"), ["f"]);
    assert!(agent.take().is_empty());
}

#[test]
fn windows_of_two_sessions_name_both() {
    let world = World::new();
    world.file("f", "one\n");
    let (mut a, mut b) = (world.session("a"), world.session("b"));
    a.read("f");
    a.ok("command/begin", json!({}));
    b.ok("command/begin", json!({}));
    user::write(&world.path("f"), "two\n");
    a.sync();
    let version = a.history("f").remove(0);
    assert_eq!(version["author"]["session"], "b", "{version}");
    assert_eq!(version["candidates"], json!(["b", "a"]), "{version}");
}

#[test]
fn wrong_windows_are_refused() {
    let world = World::new();
    let mut agent = world.session("s");
    for glob in ["[", "../x", "/etc/*"] {
        agent.refused("command/begin", json!({"paths": [glob]}), "invalidParams");
    }
    agent.refused("command/end", json!({"callId": "none"}), "notFound");
    agent
        .client
        .refused("command/end", json!({}), "invalidParams");
}

#[test]
fn run_exits_as_its_command_did() {
    let world = World::new();
    let run = |command: &[&str]| {
        let mut args = vec!["run", "--session", "s", "--"];
        args.extend_from_slice(command);
        world.run(&args)
    };
    for (command, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["no-such-command"], 127),
        (&["./"], 126),
    ] {
        let output = run(command);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command:?} {}",
            err(&output)
        );
    }
    let output = world.run(&["run", "--", "true"]);
    assert_eq!(output.status.code(), Some(125), "{}", err(&output));
    assert!(
        err(&output).contains("TOUCHMARK_SESSION"),
        "{}",
        err(&output)
    );
    let wrong = world.run(&[
        "run",
        "--session",
        "s",
        "--paths",
        "[",
        "--",
        "touch",
        "ran",
    ]);
    assert_eq!(wrong.status.code(), Some(125), "{}", err(&wrong));
    assert!(!world.path("ran").exists());

    // Options behind the command are the command's.
    let output = run(&["sh", "-c", "echo \"$TOUCHMARK_SESSION $*\"", "sh", "--json"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "s --json\n");
    assert!(output.stderr.is_empty(), "{}", err(&output));
}

#[test]
fn run_says_what_changed_and_quietly_does_not() {
    let world = World::new();
    world.file("f", "one\n");
    let mut agent = world.session("s");
    agent.read("f");
    for (quiet, said) in [(false, "touchmark: changed 1 file: f\n"), (true, "")] {
        let mut args = vec!["run", "--session", "s"];
        if quiet {
            args.push("--quiet");
        }
        args.extend(["--", "sh", "-c", "echo x >> f; cat"]);
        let output = world.run(&args);
        assert!(output.status.success());
        assert_eq!(err(&output), said);
        assert_eq!(agent.taken(), [""; 0]);
        agent.read("f");
    }
}

#[test]
fn run_passes_signals_and_streams_on() {
    let world = World::new();
    for (signal, code) in [("TERM", 7), ("INT", 7), ("HUP", 7), ("USR1", 7)] {
        let script =
            format!("trap 'cat; exit 7' {signal}; echo ready; while :; do sleep 0.01; done");
        let mut run = world
            .command(&["run", "--session", "s", "--", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(run.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let mut input = run.stdin.take().unwrap();
        input.write_all(b"through\n").unwrap();
        drop(input);
        let pid = run.id().to_string();
        let killed = Command::new("kill")
            .args(["-s", signal, &pid])
            .status()
            .unwrap();
        assert!(killed.success());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        let output = finish(run, "touchmark run");
        assert_eq!(rest, "through\n", "{signal} {}", err(&output));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{signal} {}",
            err(&output)
        );
    }
}

#[test]
fn run_on_a_terminal() {
    let Ok(found) = Command::new("script").arg("--version").output() else {
        parts::not_tested("a terminal of its own: `script` is not here");
        return;
    };
    assert!(found.status.success());
    let world = World::new();
    // Counts interrupts: the terminal's goes to the command by itself, and
    // must not be passed on a second time.
    let counts = r#"$SIG{INT} = sub { $n++ }; $| = 1; print -t 0 && -t 1 ? "ready\n" : "no tty\n"; 1 until $n; select undef, undef, undef, 0.3; print "ints $n\n";"#;
    fs::write(world.outside().join("counts.pl"), counts).unwrap();
    // `exec`: a shell left between would die of the interrupt itself.
    let line = format!(
        "exec {} run --session s --workspace {} -- perl {}",
        touchmark_tests::world::binary().display(),
        world.workspace().display(),
        world.outside().join("counts.pl").display()
    );
    let mut script = Command::new("script");
    world.dress(&mut script);
    let mut script = script
        .env("SHELL", "/bin/sh")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(script.stdout.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert_eq!(first.trim_end(), "ready");
    let mut keys = script.stdin.take().unwrap();
    keys.write_all(b"\x03").unwrap();
    keys.flush().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    drop(keys);
    let output = finish(script, "script");
    assert!(rest.contains("ints 1"), "{rest:?} {}", err(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn run_without_a_daemon_runs_all_the_same() {
    let world = World::asleep();
    // No other user may use it, so no daemon starts with it.
    let runtime = world.runtime().join("touchmark");
    user_directory(&runtime, 0o755);
    let output = world.run(&[
        "run",
        "--session",
        "s",
        "--",
        "sh",
        "-c",
        "echo ran; exit 4",
    ]);
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n");
    let said = err(&output);
    assert!(said.starts_with("touchmark: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");

    let output = world.run(&["--no-start", "-q", "run", "--session", "s", "--", "true"]);
    assert_eq!(
        (output.status.code(), err(&output)),
        (Some(0), String::new())
    );
}

fn user_directory(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn run_ends_its_window_after_a_restart() {
    let mut world = World::new();
    world.file("f", "one\n");
    world.session("s").read("f");
    let mut run = world
        .command(&[
            "run",
            "--session",
            "s",
            "--",
            "sh",
            "-c",
            "echo ready; cat; echo two > f",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    world.restart();
    drop(run.stdin.take());
    let output = finish(run, "touchmark run");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(err(&output), "touchmark: changed 1 file: f\n");
    let mut agent = world.session("s");
    user::write(&world.path("f"), "three\n");
    assert_eq!(last(&mut agent, "f"), "user unmarked");
}

#[test]
fn a_formatter_follows_an_edit() {
    let world = World::new();
    for (number, how) in ["window", "wrapper", "editor"].into_iter().enumerate() {
        let name = format!("f{number}");
        world.file(&name, "one\n");
        let mut agent = world.session(&format!("s{number}"));
        agent.read(&name);
        agent.mark(&name, Some("two\n"));
        user::write(&world.path(&name), "two\n");
        agent.sync();
        let format = format!("echo formatted > {name}");
        match how {
            "window" => {
                world.run(&["run", "--session", &agent.name, "--", "sh", "-c", &format]);
            }
            // The edit was the agent's, no matter whose wrapper it is.
            "wrapper" => {
                world.run(&[
                    "run",
                    "--session",
                    "wrapper",
                    "--formatter",
                    "--",
                    "sh",
                    "-c",
                    &format,
                ]);
            }
            _ => {
                user::write(&world.path(&name), "formatted\n");
                agent.client.ok(
                    "editor/didSave",
                    json!({"path": name, "hash": sha256("formatted\n"), "formatted": true}),
                );
            }
        }
        let version = agent.history(&name).remove(0);
        assert_eq!(
            version["author"]["session"],
            json!(agent.name),
            "{how}: {version}"
        );
        assert_eq!(version["evidence"], "command", "{how}: {version}");
        assert_eq!(version["formatted"], true, "{how}: {version}");
        assert_eq!(agent.state(&name), "stale", "{how}");
        // Told by the end of the session's own window, else by take.
        let told: &[String] = match how {
            "window" => &[],
            _ => std::slice::from_ref(&name),
        };
        assert_eq!(agent.taken(), told, "{how}");
    }
}
