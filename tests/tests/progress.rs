//! What a command says on a terminal while it takes long.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use touchmark_tests::process::Stopped;
use touchmark_tests::terminal::Terminal;
use touchmark_tests::{World, user};

const WAITING: &str = "waiting for the daemon, ";

fn shows(rows: &[String], wanted: &str) -> bool {
    rows.iter().any(|row| row.starts_with(wanted))
}

#[test]
fn a_command_that_waits_says_so_until_its_answer_and_leaves_nothing() {
    let world = World::new();
    let stopped = Stopped::new(world.pid());
    let start = |args: &[&str]| Terminal::start(world.command(args), 60, 100);
    let silent = [["status", "--json"], ["status", "--quiet"]].map(|args| start(&args));
    let mut failing = start(&["show", "none"]);
    let mut answered = start(&["status"]);
    // The time passes.
    answered.until("the wait", |rows| rows[0] == format!("{WAITING}1 s"));
    answered.until("a longer wait", |rows| rows[0] == format!("{WAITING}2 s"));
    failing.until("the wait", |rows| {
        shows(rows, "reading what was recorded, ")
    });
    drop(stopped);
    let rows = answered.until("the answer", |rows| shows(rows, "telemetry"));
    assert!(!shows(&rows, "waiting"), "{rows:#?}");
    assert_eq!(rows[1].split_whitespace().next(), Some("daemon"));
    let rows = failing.until("the error", |rows| shows(rows, "touchmark: "));
    assert!(rows[0].starts_with("touchmark: "), "{rows:#?}");
    for mut silent in silent {
        silent.until("the answer", |rows| {
            rows.iter().any(|row| row.contains("durability"))
        });
        let written = silent.written();
        assert!(!written.contains("waiting"), "{written}");
    }
}

#[test]
fn a_narrow_terminal_and_one_without_a_cursor_stay_clean() {
    let world = World::new();
    let stopped = Stopped::new(world.pid());
    let mut narrow = Terminal::start(world.command(&["status"]), 20, 30);
    let mut dumb = world.command(&["status"]);
    dumb.env("TERM", "dumb");
    let mut dumb = Terminal::start_as(dumb, 60, 12);
    narrow.until("a longer wait", |rows| rows[0].ends_with(", 2 s"));
    assert!(!narrow.has_wrapped());
    drop(stopped);
    dumb.until("the answer", |rows| shows(rows, "telemetry"));
    assert!(!dumb.written().contains("waiting"), "{}", dumb.written());
}

#[test]
fn attest_counts_the_commits_of_a_range() {
    let world = World::new();
    let git = |args: &[&str]| {
        let output = user::git_command(world.workspace(), args).output();
        assert!(output.unwrap().status.success(), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    for text in ["one\n", "two\n", "three\n"] {
        world.file("f", text);
        git(&["add", "-A"]);
        git(&[
            "-c",
            "user.name=U",
            "-c",
            "user.email=u@example.invalid",
            "commit",
            "-qm",
            text,
        ]);
    }
    // A git that waits before it compares two commits.
    let tools = tempfile::tempdir().unwrap();
    let gate = tools.path().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *diff-tree*) read -r _ < '{}';; esac\nPATH='{path}' exec git \"$@\"\n",
        gate.display()
    );
    let shim = tools.path().join("git");
    fs::write(&shim, script).unwrap();
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = world.command(&["attest", "HEAD~2..HEAD"]);
    command
        .env("PATH", format!("{}:{path}", tools.path().display()))
        .env("PAGER", "");
    let mut terminal = Terminal::start(command, 80, 20);
    for done in ["0 of 2", "1 of 2"] {
        let wanted = format!("looking for who wrote the commits: {done}, ");
        terminal.until(&wanted, |rows| rows[0].starts_with(&wanted));
        fs::write(&gate, "\n").unwrap();
    }
    let rows = terminal.until("both commits", |rows| {
        rows.iter().filter(|row| row.starts_with("commit ")).count() == 2
    });
    assert!(rows[0].starts_with("commit "), "{rows:#?}");
    assert!(!shows(&rows, "looking"), "{rows:#?}");
}
