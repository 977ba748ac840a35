//! SEC-1: one daemon for one store, whatever runtime directory its starters and
//! clients use. Some agents start MCP servers and hooks with only a few
//! variables, without `XDG_RUNTIME_DIR`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};
use touchmark_client::{Environment, Hello, Workspace, connect_or_start};
use touchmark_proto::Holder;
use touchmark_proto::daemon::Status;
use touchmark_tests::hooks::Talk;
use touchmark_tests::mcp::ERAS;
use touchmark_tests::process::{daemons_below, signal, until, wait_gone};
use touchmark_tests::world::{binary, finish};
use touchmark_tests::{Mcp, Session, World, children, parts, user};

/// Returns a `touchmark` command with another runtime directory than the
/// world's; `None` for no variable.
fn elsewhere(world: &World, runtime: Option<&Path>, args: &[&str]) -> Command {
    let mut command = world.command(args);
    match runtime {
        Some(runtime) => command.env("XDG_RUNTIME_DIR", runtime),
        None => command.env_remove("XDG_RUNTIME_DIR"),
    };
    command
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    children::start(command).unwrap()
}

fn run(mut command: Command) -> Output {
    finish(start(&mut command), "a command")
}

fn told(output: &Output) -> String {
    let all = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn result(output: &Output) -> Value {
    assert!(output.status.success(), "{}", told(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Creates a runtime directory, whose path is short enough for a socket's.
fn runtime() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("tm").tempdir().unwrap()
}

/// Returns the client library's environment without a runtime directory.
fn without_runtime(world: &World) -> Environment {
    let mut environment = world.environment();
    environment.base.runtime = None;
    environment.base.cache = world.outside().join(".cache");
    environment
}

#[test]
fn sec1_a_second_daemon_of_another_runtime_directory_names_the_first_and_ends() {
    let mut world = World::new();
    let other = runtime();
    for runtime in [Some(other.path()), None] {
        let output = run(elsewhere(&world, runtime, &["daemon"]));
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        let said = told(&output);
        assert!(said.contains(&format!("pid {}", world.pid())), "{said}");
        let socket = world.socket().to_string_lossy().into_owned();
        assert!(said.contains(&socket), "{said}");
    }
    assert_eq!(daemons_below(world.workspace()), [world.pid()]);
    world.healthy();
}

#[test]
fn sec1_of_daemons_started_at_once_with_different_runtime_directories_one_lives() {
    for _ in 0..5 {
        let world = World::asleep();
        let runtimes = [runtime(), runtime(), runtime()];
        let mut started: Vec<Child> = runtimes
            .iter()
            .map(|runtime| start(&mut elsewhere(&world, Some(runtime.path()), &["daemon"])))
            .collect();
        // All but one end, whichever that is.
        let mut ended = Vec::new();
        until("more than one daemon lives", || {
            for index in (0..started.len()).rev() {
                if started[index].try_wait().unwrap().is_some() {
                    ended.push(started.remove(index));
                }
            }
            started.len() == 1
        });
        let winner = started.pop().unwrap();
        until("the lock names no process", || {
            let text = fs::read(world.lock()).unwrap_or_default();
            Holder::parse(&text).is_some_and(|holder| holder.pid == winner.id())
        });
        let holder = Holder::parse(&fs::read(world.lock()).unwrap()).unwrap();
        let socket = holder.socket.unwrap();
        for loser in ended {
            let output = finish(loser, "a second daemon");
            assert_eq!(output.status.code(), Some(1), "{}", told(&output));
            let said = told(&output);
            assert!(said.contains(&format!("pid {}", winner.id())), "{said}");
            assert!(said.contains(&*socket.to_string_lossy()), "{said}");
        }
        // That one answers every client, wherever it runs.
        for runtime in runtimes.iter().map(|r| Some(r.path())).chain([None]) {
            let status = result(&run(elsewhere(&world, runtime, &["call", "status"])));
            assert_eq!(status["pid"], winner.id());
        }
        assert!(run(elsewhere(&world, None, &["stop"])).status.success());
        assert_eq!(finish(winner, "the daemon").status.code(), Some(0));
        assert!(!world.lock().exists());
    }
}

#[test]
fn sec1_every_client_finds_a_daemon_of_another_runtime_directory() {
    let mut world = World::new();
    world.file("a.txt", "one\n");
    let pid = world.pid();
    let socket = world.socket().to_string_lossy().into_owned();
    let call = |args: &[&str]| run(elsewhere(&world, None, args));

    let printed = call(&["socket"]);
    assert_eq!(told(&printed).trim_end(), socket);
    let said = result(&call(&["--json", "socket"]));
    assert_eq!(
        (&said["socket"], &said["running"]),
        (&json!(socket), &json!(true))
    );
    assert_eq!(result(&call(&["call", "status"]))["pid"], pid);
    let all = result(&call(&["--json", "fleet", "status"]));
    assert_eq!(
        (&all["daemons"], &all["workspaces"][0]["pid"]),
        (&json!(1), &json!(pid))
    );
    let doctor = call(&["doctor"]);
    assert!(doctor.status.success(), "{}", told(&doctor));
    assert!(told(&doctor).contains(&format!("held by pid {pid}, which listens at {socket}")));

    // The library, by whichever way it looks for the workspace.
    let environment = without_runtime(&world);
    fs::create_dir(world.path("deep")).unwrap();
    let workspace = Workspace::find(&world.path("deep"), &environment).unwrap();
    assert_eq!(workspace.root, world.workspace());
    let client =
        connect_or_start(&workspace, &Hello::new("tests", "1"), &world.starting()).unwrap();
    assert_eq!(client.call(Status {}).unwrap().pid, pid);

    // An MCP server, and a hook.
    for era in ERAS {
        let mut mcp = Mcp::start(elsewhere(&world, None, &["mcp"]), era);
        mcp.done("read_file", json!({"path": "a.txt"}));
    }
    let mut hook = elsewhere(&world, None, &["hook", "claude"]);
    hook.stdin(Stdio::piped());
    let mut hook = start(&mut hook);
    let event = json!({"hook_event_name": "SessionStart", "session_id": "of-a-hook",
        "cwd": world.workspace(), "source": "startup"});
    serde_json::to_writer(hook.stdin.take().unwrap(), &event).unwrap();
    assert!(finish(hook, "a hook").status.success());
    let sessions = world.client().ok("session/list", json!({}));
    assert!(sessions.to_string().contains("of-a-hook"), "{sessions}");

    assert_eq!(daemons_below(world.workspace()), [pid], "none was started");
    world.healthy();
}

#[test]
fn sec1_a_daemon_that_an_agent_started_without_a_runtime_directory_is_the_users_too() {
    let world = World::asleep();
    let pid = result(&run(elsewhere(&world, None, &["call", "status"])))["pid"].clone();
    let output = world.run(&["call", "status"]);
    assert_eq!(result(&output)["pid"], pid);
    let found = fs::read(world.lock()).unwrap();
    let socket = Holder::parse(&found).unwrap().socket.unwrap();
    assert_ne!(socket, world.socket());
    assert_eq!(
        told(&world.run(&["socket"])).trim_end(),
        socket.to_string_lossy()
    );

    // One that was killed leads nowhere, and the next may live elsewhere.
    let killed = u32::try_from(pid.as_u64().unwrap()).unwrap();
    signal(killed, Signal::KILL);
    wait_gone(killed);
    let next = result(&world.run(&["call", "status"]))["pid"].clone();
    assert_ne!(next, pid);
    let found = Holder::parse(&fs::read(world.lock()).unwrap()).unwrap();
    assert_eq!(found.socket.unwrap(), world.socket());
    assert_eq!(
        result(&run(elsewhere(&world, None, &["call", "status"])))["pid"],
        next
    );
    assert!(world.run(&["stop"]).status.success());
    assert_eq!(world.left_behind(), Vec::<String>::new());
}

/// Starts a daemon in a sandbox: a mount namespace with a runtime directory of
/// its own, and with its own processes if `pids`. Returns false where no such
/// namespace can be made.
fn start_in_a_sandbox(world: &World, pids: bool) -> bool {
    let inside = format!(
        "mount -t tmpfs -o mode=700 none {} && exec \"$0\" --workspace {} call ping",
        world.runtime().display(),
        world.workspace().display()
    );
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if pids {
        command.args(["--pid", "--fork", "--mount-proc"]);
    }
    world.dress(&mut command);
    command.args(["sh", "-c", &inside]).arg(binary());
    let output = run(command);
    if output.stdout.is_empty() {
        parts::not_tested(&format!("a daemon in a sandbox: {}", told(&output)));
    }
    !output.stdout.is_empty()
}

#[test]
fn sec1_a_daemon_in_a_sandbox_is_reached_from_outside() {
    let world = World::asleep();
    world.file("a.txt", "one\n");
    if !start_in_a_sandbox(&world, false) {
        return;
    }
    let pid = result(&world.run(&["call", "status"]))["pid"].clone();
    // Hooks reach it as well.
    let mut talk = Talk::new(&world, "claude", "s");
    talk.read("a.txt").nothing();
    user::replace(&world.path("a.txt"), "one\nthe user's\n");
    let call = talk.call();
    let heard = talk.say(&talk.voice.before_write(&call, "a.txt", "agent\n"));
    assert!(heard.denied().contains("the user's"));
    let examined = told(&world.run(&["doctor"]));
    assert!(
        examined.contains(&format!("process {pid} runs in another mount namespace")),
        "{examined}"
    );
    let listed = told(&world.run(&["fleet", "status"]));
    assert!(listed.contains(&pid.to_string()), "{listed}");
    assert!(world.run(&["stop"]).status.success());
    assert_ne!(result(&world.run(&["call", "status"]))["pid"], pid);
    assert!(world.run(&["stop"]).status.success());
}

#[test]
fn sec1_a_daemon_that_cannot_be_reached_is_named_and_ended() {
    let world = World::asleep();
    if !start_in_a_sandbox(&world, false) {
        return;
    }
    let holder = Workspace::at(world.workspace(), &world.environment()).unwrap();
    let pid = holder.holder().unwrap();
    // As if its root could not be looked into.
    let text = fs::read(world.lock()).unwrap();
    let nowhere = Holder {
        socket: Some("/nowhere/s.sock".into()),
        ..Holder::parse(&text).unwrap()
    };
    fs::write(world.lock(), nowhere.text()).unwrap();
    let ends = format!("`touchmark stop --pid {pid}`");
    for args in [&["call", "status"][..], &["doctor"], &["fleet", "status"]] {
        let said = told(&world.run(args));
        assert!(said.contains(&ends), "{args:?}: {said}");
    }
    let other = told(&world.run(&["stop", "--pid", "1"]));
    assert!(other.contains("does not hold the store"), "{other}");
    assert!(
        world
            .run(&["stop", "--pid", &pid.to_string()])
            .status
            .success()
    );
    wait_gone(pid);
    assert_ne!(result(&world.run(&["call", "status"]))["pid"], json!(pid));
    assert!(world.run(&["stop"]).status.success());
}

/// A container has the workspace mounted under another path, and a home of its own.
#[test]
fn sec1_daemons_with_two_stores_see_each_other_through_another_mount() {
    const SAYS: &str = "another daemon, with a store of its own";
    let (mut outside, mut inside) = (World::asleep(), World::asleep());
    outside.file("a.txt", "one\n");
    outside.start();
    let doctor = |world: &World| told(&world.run(&["doctor"]));
    assert!(!doctor(&outside).contains(SAYS));
    let mount = format!(
        "mount --bind {} {} && exec \"$@\"",
        outside.workspace().display(),
        inside.workspace().display()
    );
    inside.launch_through(&["unshare", "--mount", "sh", "-c", &mount, "sh"]);
    if inside.try_start().is_err() {
        parts::not_tested("a daemon in a container with a mounted workspace");
        return;
    }
    for world in [&outside, &inside] {
        let status = world
            .client()
            .try_call("status", &json!({}))
            .unwrap()
            .unwrap();
        let causes = status["degraded"].as_array().unwrap();
        let says = |part: &&Value| part["cause"].as_str().unwrap().starts_with(SAYS);
        assert_eq!(causes.iter().filter(says).count(), 1, "{status}");
    }
    assert!(
        doctor(&outside).contains("Containers"),
        "{}",
        doctor(&outside)
    );
    inside.stop();
    assert!(!doctor(&outside).contains(SAYS));
    outside.stop();
}

/// In a container, a process has another id than outside.
#[test]
fn attr6_a_process_in_a_container_is_named_by_the_id_that_it_has_there() {
    let world = World::new();
    let call = |method: &str, params: &str| {
        format!(
            "\"$0\" --workspace {} call {method} {params}",
            world.workspace().display()
        )
    };
    // The first line is the id, the next is the answer. It ends with its input.
    let inside = format!(
        "sleep 1000 & echo $!; {}; read end; kill $!",
        call(
            "command/begin",
            "{\\\"session\\\":\\\"s\\\",\\\"pid\\\":$!}"
        )
    );
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &inside]);
    world.dress(&mut command);
    let mut container = command
        .arg(binary())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(container.stdout.take().unwrap()).lines();
    let Some(id) = lines.next() else {
        container.wait().unwrap();
        return parts::not_tested("a process in a container: unshare --pid");
    };
    let id: u32 = id.unwrap().parse().unwrap();
    let begun = lines.next().unwrap().unwrap();
    // A window of a process that is not there would end at once.
    let mut agent = world.session("s");
    let open = |agent: &mut Session| {
        agent.client.ok("sync", json!({}));
        let listed = agent.client.ok("command/list", json!({}));
        listed["commands"][0]["ended"].is_null()
    };
    assert!(open(&mut agent), "{id}: {begun}");
    container.stdin.take().unwrap().write_all(b"\n").unwrap();
    container.wait().unwrap();
    until("the window ends", || !open(&mut agent));
}
