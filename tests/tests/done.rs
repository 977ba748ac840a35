//! HIST-7, CHK-3: what was done, as `touchmark log` shows it on a terminal of
//! 80 columns, and going back to a prompt.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use touchmark_tests::hooks::Talk;
use touchmark_tests::terminal::without_times;
use touchmark_tests::{World, parts, user};

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

fn ran(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what a command prints on a terminal of 80 columns, without styles
/// and with each run of blanks as two; `None` if this machine has no `script`.
fn on_terminal(world: &World, args: &[&str]) -> Option<Vec<String>> {
    let words: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let program = touchmark_tests::world::binary();
    let line = format!(
        "stty cols 80 rows 24; '{}' {}",
        program.display(),
        words.join(" ")
    );
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]);
    command.current_dir(world.workspace());
    world.dress(&mut command);
    command
        .env("TOUCHMARK_PAGER", "cat")
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(_) => {
            parts::not_tested("the log on a terminal: there is no `script`");
            return None;
        }
    };
    let printed = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{args:?}: {printed}");
    Some(printed.lines().map(str::to_owned).collect())
}

/// Commits everything, at a time that is so many seconds from now. Git's log
/// tells the second only.
fn commit(world: &World, message: &str, seconds: i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let at = i64::try_from(now.as_secs()).unwrap() + seconds;
    let mut command = user::git_command(world.workspace(), &["commit", "-q", "-a", "-m", message]);
    let done = command
        .env("GIT_COMMITTER_DATE", format!("@{at} +0000"))
        .status();
    assert!(done.unwrap().success());
}

/// Returns an agent that was given two prompts. In the first it edits a file
/// and changes twelve by a command; in the second it edits again.
fn worked(world: &World) -> Talk<'_> {
    user::git(world.workspace(), &["init", "-q", "-b", "main"]);
    fs::create_dir(world.path("lib")).unwrap();
    for n in 0..12 {
        world.file(&format!("lib/mod{n}.py"), format!("x = {n}\n"));
    }
    world.file("a.txt", "one\ntwo\nthree\nfour\n");
    user::git(world.workspace(), &["add", "-A"]);
    commit(world, "base", -3_600);
    let mut talk = Talk::new(world, "claude", "0199c7f4-3a31-7c20-9df1-4be0f1b2a901");
    talk.start();
    talk.prompt(
        "p1",
        "rename x to y in all modules of the library\nplease, and use the key sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 for it",
    );
    talk.read("a.txt");
    talk.edit("a.txt", "two", "TWO");
    talk.shell("sed -i 's/x = /y = /' lib/*.py; echo all modules of the library were renamed");
    stop(&talk);
    talk.prompt("p2", "now the second thing");
    talk.edit("a.txt", "four", "FOUR");
    stop(&talk);
    talk
}

fn stop(talk: &Talk<'_>) {
    talk.say(&talk.voice.stop()).nothing();
}

#[test]
fn hist7_the_log_shows_what_was_done_on_eighty_columns() {
    let mut world = World::new();
    let talk = worked(&world);
    ran(&world, &["undo", "claude-1", "--prompt", "last", "--yes"]);
    ran(&world, &["redo", "--yes"]);
    ran(&world, &["review", "--keep-all"]);
    let log = ran(&world, &["log", "a.txt"]);
    let oldest = log
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap();
    let version = format!("a.txt@{oldest}");
    ran(&world, &["restore", &version, "--yes"]);
    commit(&world, "all", 60);
    drop(talk);

    let Some(lines) = on_terminal(&world, &["log"]) else {
        return;
    };
    for line in &lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let rows = without_times(&lines);
    let head = |args: &[&str]| {
        let output = user::git_command(world.workspace(), args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let commits = head(&["log", "--format=%h", "--abbrev=7"]);
    let (new, old) = commits.split_once('\n').unwrap();
    let expected = [
        format!("you | git | commit, main {old}..{new}"),
        "N | you | restored | a.txt to N | 1 file".to_owned(),
        "N | you | kept | 14 changes by claude-1 | 13 files".to_owned(),
        "u2 | you | redid | u1 | 1 file".to_owned(),
        "u1 | you | undid | claude-1, prompt last | 1 file".to_owned(),
        "N | claude-1 | edited | a.txt | e2".to_owned(),
        "k2 | claude-1 | prompt | now the second thing".to_owned(),
        "c1 | claude-1 | ran | sed -i 's/x = /y = /' lib/*.py; echo all modules of the library were renamed | 12 files".to_owned(),
        "N | claude-1 | edited | a.txt | e1".to_owned(),
        "k1 | claude-1 | prompt | rename x to y in all modules of the library please, and use".to_owned(),
    ];
    let numbered = |row: &String| {
        let cells = row.split(" | ").map(|cell| match cell.parse::<u64>() {
            Ok(_) => "N".to_owned(),
            Err(_) => match cell.rsplit_once(" to ") {
                Some((file, n)) if n.parse::<u64>().is_ok() => format!("{file} to N"),
                _ => cell.to_owned(),
            },
        });
        cells.collect::<Vec<_>>().join(" | ")
    };
    let rows: Vec<String> = rows.iter().map(numbered).collect();
    for (row, whole) in rows.iter().zip(&expected) {
        let mut cells = row.split(" | ").zip(whole.split(" | "));
        let is_same = cells.all(|(cell, whole)| match cell.strip_suffix("…") {
            // How much is left out follows from the width of the times.
            Some(begin) => begin.len() > 20 && whole.starts_with(begin),
            None => cell == whole,
        });
        assert!(is_same, "{row}, not {whole}: {lines:#?}");
        assert_eq!(row.matches(" | ").count(), whole.matches(" | ").count());
    }
    assert!(rows.len() >= expected.len(), "{lines:#?}");

    // The files of a command, and the versions of one file with its name.
    let files = ran(&world, &["log", "--files"]);
    assert!(files.lines().count() > lines.len() + 12, "{files}");
    let one = ran(&world, &["log", "lib/mod3.py"]);
    assert!(one.trim_end().ends_with("lib/mod3.py  c1"), "{one}");
    let mine = ran(&world, &["log", "--by", "me"]);
    assert!(!mine.contains("claude-1  ran"), "{mine}");
    assert!(mine.contains("u1"), "{mine}");
    // All of it is kept over a restart, which drops other facts.
    let before = ran(&world, &["log"]).lines().count();
    world.restart();
    assert_eq!(ran(&world, &["log"]).lines().count(), before);
    world.healthy();
}

#[test]
fn chk3_prompts_are_listed_with_their_beginning_and_what_they_changed() {
    let mut world = World::new();
    let talk = worked(&world);
    let lines = ran(&world, &["checkpoints"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let said = "13 files, +13 -13  rename x to y in all modules of the library please, and use";
    assert!(lines[0].contains(said), "{lines:?}");
    assert!(!lines[0].contains("AbCdEf"), "{lines:?}");
    assert!(lines[0].starts_with("k1  "), "{lines:?}");
    assert!(
        lines[1].ends_with("1 file, +1 -1      now the second thing"),
        "{lines:?}"
    );
    // Forgotten with the session.
    ran(&world, &["forget", "--session", "claude-1"]);
    drop(talk);
    let said = ran(&world, &["log"]);
    assert!(!said.contains("second thing"), "{said}");
    world.healthy();
}

#[test]
fn chk3_rewind_takes_back_what_agents_did_since_a_prompt() {
    let mut world = World::new();
    let talk = worked(&world);
    let mut other = world.session("other");
    world.file("b.txt", "one\n");
    other.read("b.txt");
    let edited = json!({"path": "b.txt", "oldString": "one", "newString": "ONE"});
    other.ok("file/edit", edited);
    user::replace(&world.path("a.txt"), "mine\none\nTWO\nthree\nFOUR\n");
    other.sync();

    let planned = ran(&world, &["rewind", "k2", "--dry-run"]);
    assert!(
        planned.contains("    line 5\n     one\n     TWO\n     three\n    -FOUR\n    +four\n"),
        "{planned}"
    );
    assert!(planned.contains("    -ONE\n    +one\n"), "{planned}");
    assert!(!planned.contains("mod3.py"), "{planned}");
    assert_eq!(on_disk(&world, "b.txt"), "ONE\n");
    // One session's.
    ran(&world, &["rewind", "k2", "--session", "claude-1", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), "mine\none\nTWO\nthree\nfour\n");
    assert_eq!(on_disk(&world, "b.txt"), "ONE\n");
    ran(&world, &["redo", "--yes"]);
    // All agents'; your line stays.
    ran(&world, &["rewind", "k2", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), "mine\none\nTWO\nthree\nfour\n");
    assert_eq!(on_disk(&world, "b.txt"), "one\n");
    assert_eq!(on_disk(&world, "lib/mod3.py"), "y = 3\n");
    // What appeared while a command ran may be yours (UNDO-7).
    ran(&world, &["rewind", "k1", "--yes"]);
    assert_eq!(on_disk(&world, "a.txt"), "mine\none\ntwo\nthree\nfour\n");
    assert_eq!(on_disk(&world, "lib/mod3.py"), "y = 3\n");
    ran(&world, &["rewind", "k1", "--yes", "--likely"]);
    assert_eq!(on_disk(&world, "lib/mod3.py"), "x = 3\n");
    // Names that do not exist change nothing.
    let wrong = world.run(&["rewind", "k99", "--yes"]);
    assert_eq!(wrong.status.code(), Some(4), "{wrong:?}");
    let wrong = world
        .client()
        .refused("undo", json!({"since": "p1"}), "invalidParams");
    assert!(wrong.message.contains("checkpoint"), "{wrong:?}");
    drop(talk);
    world.healthy();
}

#[test]
fn rev1_what_a_command_did_to_many_files_is_one_entry() {
    let mut world = World::new();
    let talk = worked(&world);
    let list = ran(&world, &["review", "--list"]);
    assert_eq!(list.matches("lib/mod").count(), 6, "{list}");
    let entry = "c1: 12 files  by claude-1 or you\n+12 -12 in lib/mod0.py lib/mod1.py lib/mod10.py \
                 lib/mod11.py lib/mod2.py lib/mod3.py and 6 more\n";
    assert!(list.contains(entry), "{list}");
    let all = ran(&world, &["review", "--list", "--files"]);
    assert!(
        all.contains("lib/mod9.py: line 1  by claude-1 or you\n-x = 9\n+y = 9\n"),
        "{all}"
    );
    let of_command = ran(&world, &["review", "--list", "--command", "c1"]);
    assert_eq!(of_command, entry);

    // Its text may be yours, so it stays unless you say otherwise (UNDO-7).
    let undo = ["review", "--command", "c1", "--undo-all"];
    let left = world.run(&undo);
    assert_eq!(left.status.code(), Some(1), "{left:?}");
    let said = String::from_utf8_lossy(&left.stdout);
    assert!(said.contains(entry), "{said}");
    assert_eq!(on_disk(&world, "lib/mod9.py"), "y = 9\n");
    ran(&world, &[&undo[..], &["--likely"]].concat());
    assert_eq!(on_disk(&world, "lib/mod9.py"), "x = 9\n");
    assert_eq!(on_disk(&world, "a.txt"), "one\nTWO\nthree\nFOUR\n");
    ran(&world, &["redo", "--yes"]);
    assert_eq!(on_disk(&world, "lib/mod9.py"), "y = 9\n");
    ran(&world, &["review", "--command", "c1", "--keep-all"]);
    let left = ran(&world, &["review", "--list"]);
    assert!(left.contains("a.txt") && !left.contains("lib/"), "{left}");
    drop(talk);
    world.healthy();
}
