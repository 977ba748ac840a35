//! `touchmark watch` and the tables, as people see them.

use std::process::Output;

use serde_json::{Value, json};
use touchmark_tests::terminal::Terminal;
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::world::binary;
use touchmark_tests::{Session, World, user};

const CLAUDE: &str = "6f1c2d3e-8a4b-4c5d-9e6f-708192a3b4c5";
const CODEX: &str = "019a8f00-2222-7aaa-8bbb-0123456789ab";
const LONG: &str = "packages/service/src/components/navigation/sidebar/panel_header.rs";
const WIDE: &str = "文档/设计/导航栏/侧边栏/折叠面板/标题组件的说明文档.md";

fn agent(world: &World, session: &str, program: &str) -> Session {
    let mut agent = Session::new(world.client(), session, world.workspace());
    agent.ok(
        "session/open",
        json!({"agent": {"name": program, "version": "1"}}),
    );
    agent
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A workspace in which claude-1 has read two files, and the user has changed
/// one of them.
fn begun() -> (World, Session) {
    let world = World::new();
    world.file(LONG, "one\n");
    world.file(WIDE, "one\n");
    let mut claude = agent(&world, CLAUDE, "claude");
    claude.read(LONG);
    claude.read(WIDE);
    user::write(&world.path(LONG), "two\n");
    claude.sync();
    (world, claude)
}

#[test]
fn the_feed_is_redrawn_and_no_line_wraps() {
    let (world, mut claude) = begun();
    let mut terminal = Terminal::start(world.command(&["watch"]), 60, 12);
    // It begins with what happened lately, and with what there is to look at.
    let has = |rows: &[String], wanted: &str| rows.iter().any(|row| row.contains(wanted));
    let rows = terminal.until("the past", |rows| has(rows, "header.rs"));
    assert!(rows[0].contains("1 session · 1 stale copy"), "{rows:#?}");
    assert!(
        rows[1].contains("you") && rows[1].contains("edited"),
        "{rows:#?}"
    );
    assert!(
        rows[1].contains('…') && rows[1].contains("+1 -1"),
        "{rows:#?}"
    );
    // Times age, where they are.
    let age = |row: &str| row.split_whitespace().next()?.parse::<u32>().ok();
    let first = age(&rows[1]).unwrap();
    terminal.until("an older line", |rows| age(&rows[1]) > Some(first));
    // The header follows.
    let mut codex = agent(&world, CODEX, "codex");
    codex.read(WIDE);
    user::write(&world.path(WIDE), "two\n");
    codex.sync();
    let rows = terminal.until("the new header and the new session", |rows| {
        rows[0].contains("2 sessions · 3 stale copies") && has(rows, "codex-1")
    });
    assert!(!rows.concat().contains(&CODEX[..8]), "{rows:#?}");
    // More than the screen holds: the header stays above.
    let names: Vec<String> = (0..20).map(|number| format!("src/{number}.rs")).collect();
    for name in &names {
        world.file(name, "one\n");
        claude.read(name);
    }
    let rows = terminal.until("the last line", |rows| has(rows, "src/19.rs"));
    let headers = rows.iter().filter(|row| row.contains("sessions ·"));
    assert_eq!(headers.count(), 1, "{rows:#?}");
    assert!(rows[0].contains("2 sessions"), "{rows:#?}");
    // What one command did to many files is one line.
    let script = "for file in src/*.rs; do echo two > $file; done";
    out(&world.run(&["run", "--session", CLAUDE, "--", "sh", "-c", script]));
    let rows = terminal.until("the burst", |rows| has(rows, "20 files in src"));
    assert!(!has(&rows, "src/7.rs"), "{rows:#?}");
    assert!(!terminal.has_wrapped(), "{rows:#?}");
    // What has left the screen was written once with the time of day.
    let written = terminal.written();
    let lines = written.lines().filter(|line| line.contains("src/0.rs"));
    let gone = lines.filter(|line| {
        let (time, _) = line.split_once("  claude-1").unwrap();
        time.ends_with(|c: char| c.is_ascii_digit()) && time[time.len() - 3..].starts_with(':')
    });
    assert_eq!(gone.count(), 1, "{written}");
    // A narrower terminal gets narrower lines.
    terminal.resize(44, 12);
    terminal.until("the narrow header", |rows| {
        rows[0].contains("2 sessions") && has(rows, "20 files in src")
    });
    assert!(!terminal.has_wrapped(), "{:#?}", terminal.rows());
}

/// In a pipe each line is written once, with the time of day.
#[test]
fn in_a_pipe_the_feed_begins_with_the_past_as_well() {
    use std::io::{BufRead as _, BufReader};
    let (world, _claude) = begun();
    let lines = |args: &[&str], many: usize| -> Vec<String> {
        let mut child = world
            .command(&[&["watch"], args].concat())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, told) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut lines = lines.map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        // What is not there at once is not the past.
        let told: Vec<String> = (0..many)
            .map_while(|_| told.recv_timeout(PATIENCE / 3).ok())
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(reader.join());
        assert_eq!(told.len(), many, "{told:#?}");
        told
    };
    let told = lines(&[], 2);
    assert!(told[0].contains("1 session · 1 stale copy"), "{told:#?}");
    assert!(
        told[1].contains(LONG) && told[1].contains("you"),
        "{told:#?}"
    );
    assert_eq!(
        told[1].chars().filter(|c| *c == ':').count(),
        2,
        "{told:#?}"
    );
    // By the beginning of a session's id, and without the header.
    let told = lines(&["--quiet", "--session", &CLAUDE[..8]], 1);
    assert!(told[0].contains(LONG), "{told:#?}");
    let refused = world.run(&["watch", "--session", "nobody"]);
    assert_eq!(refused.status.code(), Some(1));
    // As JSON from the first change on.
    let told = lines(&["--json", "--since", "10m", "--only", "version"], 1);
    let event: Value = serde_json::from_str(&told[0]).unwrap();
    assert_eq!(event["version"]["path"], LONG, "{event}");
}

#[test]
fn tables_fit_a_terminal_with_ids_of_36_characters() {
    let (world, mut claude) = begun();
    let mut codex = agent(&world, CODEX, "codex");
    codex.read(LONG);
    claude.ok(
        "checkpoint/create",
        json!({"label": "before lunch", "message": CODEX}),
    );
    user::write(&world.path(WIDE), "two\n");
    claude.sync();
    let commands: &[&[&str]] = &[
        &["sessions"],
        &["files"],
        &["modified"],
        &["log", "--stat"],
        &["history", LONG],
        &["status"],
        &["fleet", "status"],
        &["checkpoint", "list", "--session", "claude"],
        &[
            "checkpoint",
            "detect",
            "before lunch",
            "--session",
            "claude",
        ],
        &["diff", "--stat", "--from", "1h"],
        // A message and a hint.
        &["undo", "nobody", "--prompt", "no-such-prompt", "--dry-run"],
        &["history", "no/such/file/in/the/workspace"],
    ];
    for columns in [60, 80, 120] {
        for args in commands {
            let mut command = world.command(args);
            command.env("TOUCHMARK_PAGER", "cat");
            let mut terminal = Terminal::start(command, columns, 50);
            // A table ends with its last row: what follows is the prompt.
            let rows = terminal.until("a table", |rows| !rows[0].is_empty());
            assert!(!terminal.has_wrapped(), "{args:?} {columns}: {rows:#?}");
        }
    }
}

#[test]
fn files_of_all_sessions() {
    let (world, _claude) = begun();
    let mut codex = agent(&world, CODEX, "codex");
    codex.read(LONG);
    let all = out(&world.run(&["files"]));
    assert_eq!(all.lines().count(), 3, "{all}");
    assert!(
        all.contains("claude-1  stale") && all.contains("codex-1   fresh"),
        "{all}"
    );
    let stale = out(&world.run(&["files", "--stale"]));
    assert_eq!(stale.lines().count(), 1, "{stale}");
    let json: Value = serde_json::from_str(&out(&world.run(&["files", "--json"]))).unwrap();
    assert_eq!(json["sessions"][1]["session"], CLAUDE, "{json}");
    assert_eq!(json["sessions"][1]["files"][0]["path"], LONG, "{json}");
    assert_eq!(json["sessions"][0]["label"], "codex-1", "{json}");
}

#[test]
fn a_checkpoint_is_named_by_its_label() {
    let (mut world, mut claude) = begun();
    world.set_env("TOUCHMARK_SESSION", CLAUDE);
    let done = |world: &World, args: &[&str]| out(&world.run(args));
    done(&world, &["checkpoint", "create", "before-lunch"]);
    user::write(&world.path(LONG), "three\n");
    claude.sync();
    let log = |since: &str| done(&world, &["log", "--since", since]).lines().count();
    assert_eq!(log("before-lunch"), 1);
    assert_eq!(log("claude-1/before-lunch"), 1);
    assert_eq!(
        done(&world, &["show", &format!("{LONG}@before-lunch")]),
        "two\n"
    );
    assert_eq!(
        done(&world, &["show", LONG, "--at", "before-lunch"]),
        "two\n"
    );
    assert!(done(&world, &["diff", "--from", "before-lunch"]).contains("+three"));
    let found = done(&world, &["checkpoint", "detect", "before-lunch"]);
    assert!(found.contains("differs"), "{found}");
    claude.ok(
        "file/write",
        json!({"path": WIDE, "text": "by claude\n", "force": true}),
    );
    let plan = ["undo", "claude-1", "--prompt", "before-lunch", "--dry-run"];
    assert!(done(&world, &plan).contains(WIDE));
    // A label that two have names none.
    done(&world, &["checkpoint", "create", "before-lunch"]);
    for args in [
        &["log", "--since", "before-lunch"][..],
        &["checkpoint", "delete", "before-lunch"],
        &["log", "--since", "after-lunch"],
    ] {
        assert_eq!(world.run(args).status.code(), Some(2), "{args:?}");
    }
    done(
        &world,
        &["checkpoint", "delete", "k2", "--session", "claude"],
    );
    done(&world, &["checkpoint", "delete", "before-lunch"]);
    assert!(done(&world, &["checkpoint", "list"]).contains("no checkpoints"));
}

/// A person is told a command, a program a method.
#[test]
fn hints_speak_the_language_of_the_command_line() {
    let (world, _claude) = begun();
    let said = |args: &[&str]| {
        let output = world.run(args);
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = said(&["files", "--session", "nobody"]);
    assert!(
        told.contains("`touchmark sessions`") && !told.contains("session/list"),
        "{told}"
    );
    let told = said(&["recovered", "restore", "7"]);
    assert!(told.contains("`touchmark recovered list`"), "{told}");
    let told = said(&["call", "file/status", r#"{"session":"nobody"}"#]);
    assert!(told.contains("`session/list`"), "{told}");
}

#[test]
fn all_daemons_are_stopped_at_once() {
    let (mut world, _claude) = begun();
    let other = world.outside().join("other");
    std::fs::create_dir(&other).unwrap();
    // The world's directories are in the repository of these tests.
    std::fs::write(other.join(".touchmark.toml"), "").unwrap();
    let run = |world: &World, args: &[&str]| {
        let mut command = std::process::Command::new(binary());
        world.dress(&mut command);
        out(&command.args(args).current_dir(&other).output().unwrap())
    };
    run(&world, &["start"]);
    let said = run(&world, &["stop", "--all"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.lines()
            .all(|line| line.starts_with("ended: the daemon for ")),
        "{said}"
    );
    assert!(said.contains("/other"), "{said}");
    assert_eq!(world.wait_end(), Some(0));
    assert!(run(&world, &["stop", "--all"]).contains("no daemon runs"));
}

/// The picture of now: who is in which file, what runs, what was lost.
#[test]
fn what_is_the_case_now_is_above_the_feed() {
    let mut world = World::new();
    for name in ["a.txt", "b.txt"] {
        world.file(name, "one\n");
    }
    let mut claude = agent(&world, CLAUDE, "claude");
    let mut codex = agent(&world, CODEX, "codex");
    claude.read("a.txt");
    codex.read("b.txt");
    let mut terminal = Terminal::start(world.command(&["watch"]), 80, 24);
    let has = |rows: &[String], wanted: &[&str]| {
        let is = |row: &String| wanted.iter().all(|part| row.contains(part));
        rows.iter().any(is)
    };
    // What was read before it began.
    terminal.until("both sessions", |rows| {
        has(&rows[1..4], &["claude-1", "read a.txt"])
            && has(&rows[1..4], &["codex-1", "read b.txt"])
    });
    // A command makes no event when it begins.
    let begun = codex.ok("command/begin", json!({"label": "cargo test"}));
    terminal.until("the command", |rows| {
        has(rows, &["codex-1", "runs `cargo test`"])
    });
    codex
        .client
        .ok("command/end", json!({"command": begun["command"]}));
    terminal.until("its end", |rows| {
        has(&rows[1..4], &["codex-1", "read b.txt"])
    });
    // An edit, while it is open and afterwards; it overwrites a save unseen.
    let edit = claude.begin("a.txt", None).unwrap();
    terminal.until("the open edit", |rows| {
        has(rows, &["claude-1", "edits a.txt"])
    });
    user::write(&world.path("a.txt"), "user\n");
    codex.sync();
    user::write(&world.path("a.txt"), "agent\n");
    claude.commit(&edit, "a.txt", Some("agent\n"));
    let rows = terminal.until("the loss", |rows| {
        has(&rows[1..4], &["claude-1", "edited a.txt"]) && has(rows, &["lost: a.txt"])
    });
    assert!(has(&rows, &["overwritten unseen by claude-1"]), "{rows:#?}");
    let back = rows
        .iter()
        .position(|row| row.starts_with("lost: "))
        .unwrap()
        + 1;
    assert!(
        rows[back].starts_with("  touchmark restore \"a.txt@"),
        "{rows:#?}"
    );
    assert_eq!(rows[back + 1], "", "the feed is below: {rows:#?}");
    // What was brought back is lost no more.
    user::write(&world.path("a.txt"), "agent\nuser\n");
    codex.sync();
    terminal.until("no loss", |rows| !has(rows, &["lost: "]));
    assert!(!terminal.has_wrapped());
    world.healthy();
}
