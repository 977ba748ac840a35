//! HIST-11: a line whose author the history does not know belongs to the commit
//! that has it. Git names the commit when blame is asked for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use touchmark_tests::worktrees::{Agent, git, replace, two};
use touchmark_tests::{Session, World, text};

/// Runs lines of shell in the workspace, as the user who owns the repository.
fn sh(world: &World, line: &str) {
    let output = Command::new("sh")
        .args(["-e", "-c", line])
        .current_dir(world.workspace())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.invalid")
        .env("GIT_COMMITTER_NAME", "c")
        .env("GIT_COMMITTER_EMAIL", "c@example.invalid")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {said}");
}

/// A repository with `f`: the first two lines by Ada, the third by Bob.
fn repository(world: &World) {
    world.file("f", "one 1\ntwo 2\n");
    sh(world, "git init -q -b main && git add -A");
    sh(
        world,
        "GIT_AUTHOR_DATE='@1000000000 +0000' git commit -qm first",
    );
    world.file("f", "one 1\ntwo 2\nthree 3\n");
    sh(
        world,
        "GIT_AUTHOR_DATE='@1100000000 +0000' GIT_AUTHOR_NAME='Bob \u{1b}[2J' \
         git commit -qam second",
    );
}

/// Returns each line's author: the name of the commit's, or the kind.
fn by(blame: &Value) -> Vec<String> {
    let lines = blame["lines"].as_array().unwrap().iter();
    lines
        .map(|line| match text(&line["author"], "kind").as_str() {
            "committed" => {
                assert_eq!(line["evidence"], "commit", "{line}");
                let author = line["commit"]["author"].as_str();
                author.unwrap_or("^").to_owned()
            }
            kind => {
                assert_eq!(line["commit"], Value::Null, "{line}");
                kind.to_owned()
            }
        })
        .collect()
}

fn blame(agent: &mut Session, mut params: Value) -> Value {
    if params["path"].is_null() {
        params["path"] = "f".into();
    }
    agent.client.ok("file/blame", params)
}

fn authors(agent: &mut Session) -> Vec<String> {
    by(&blame(agent, json!({})))
}

fn write(agent: &mut Session, path: &str, text: &str) {
    let params = json!({"path": path, "text": text, "force": true});
    assert_eq!(agent.ok("file/write", params)["outcome"], "applied");
}

const BOB: &str = "Bob \u{1b}[2J";

#[test]
fn hist11_a_line_from_before_touchmark_belongs_to_its_commit() {
    let world = World::new();
    repository(&world);
    // The user's, not committed.
    world.file("f", "one 1\ntwo 2\nthree 3\nfour 4\n");
    let mut agent = world.session("a");
    // A file that was never tracked.
    assert_eq!(authors(&mut agent), ["Ada", "Ada", BOB, "unknown"]);
    write(&mut agent, "f", "one 1\ntwo 2\nthree 3\nfour 4\nfive 5\n");
    let all = blame(&mut agent, json!({}));
    assert_eq!(by(&all), ["Ada", "Ada", BOB, "unknown", "agent"]);
    assert_eq!(all["cause"], Value::Null);
    assert_eq!(all["lines"][0]["time"], 1_000_000_000_000_u64);
    let head = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(world.workspace())
        .output()
        .unwrap();
    let head = String::from_utf8(head.stdout).unwrap();
    assert_eq!(all["lines"][2]["commit"]["id"], head.trim());
    // Some lines, an earlier version, and without git.
    let some = blame(&mut agent, json!({"range": {"start": 3, "end": 4}}));
    assert_eq!(by(&some), [BOB, "unknown"]);
    let first = text(&all["lines"][0], "clock");
    let earlier = blame(&mut agent, json!({"at": first}));
    assert_eq!(by(&earlier), ["Ada", "Ada", BOB, "unknown"]);
    let without = blame(&mut agent, json!({"commits": false}));
    assert_eq!(by(&without)[..3], ["unknown"; 3]);

    // On the command line, the name's control character is escaped.
    let said = world.run(&["blame", "f"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|row| row.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][1..4], ["Ada", "2001-09-09", "1"], "{said}");
    assert_eq!(rows[2][0], &head[..8], "{said}");
    assert_eq!(rows[2][1..3], ["Bob", "\\u001b[2J"], "{said}");
    assert_eq!(rows[4][1], "agent-1", "{said}");

    // The note names the agent's line alone, and counts the others as before.
    sh(&world, "git commit -qam third");
    let said = world.run(&["attest"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let counts = "2 lines: 1 by agents, 0 by you, 1 by unknown";
    assert!(said.contains(counts), "{said}");
    let said = world.run(&["attest", "HEAD~1..HEAD"]);
    assert!(!String::from_utf8_lossy(&said.stdout).contains("committed"));
}

#[test]
fn hist11_what_git_brings_belongs_to_its_commit() {
    // What the user or the agent runs, and the authors afterwards.
    let pulled = ["Ada", "agent", BOB, "Eve"];
    let ways = [
        ("git pull -q --no-rebase . up", &pulled[..]),
        ("git merge -q up", &pulled),
        ("git switch -q up", &["Ada", "Ada", BOB, "Eve"]),
        // What `HEAD` does not have is in none of its commits.
        ("git restore -s up f", &["Ada", "unknown", BOB, "unknown"]),
    ];
    for (line, expected) in ways {
        let world = World::new();
        repository(&world);
        sh(&world, "git switch -qc up");
        world.file("f", "one 1\ntwo 2\nthree 3\nfour upstream\n");
        sh(
            &world,
            "GIT_AUTHOR_NAME=Eve git commit -qam up && git switch -q main",
        );
        let mut agent = world.session("a");
        agent.read("f");
        write(&mut agent, "f", "one 1\ntwo agent\nthree 3\n");
        agent.read("f");
        sh(&world, "git add -A && git commit -qm agents");
        agent.sync();
        sh(&world, line);
        assert_eq!(authors(&mut agent), expected, "{line}");
    }
}

#[test]
fn hist11_line_ends_and_white_space_hide_no_commit() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    // CRLF on the disk, LF in git.
    world.file("f", "one 1\r\ntwo 2\r\nthree 3\r\nfour 4\r\n");
    assert_eq!(authors(&mut agent), ["Ada", "Ada", BOB, "unknown"]);
    let exact = blame(&mut agent, json!({"exact": true}));
    assert_eq!(by(&exact), ["Ada", "Ada", BOB, "unknown"]);
    // CRLF in git, too.
    sh(&world, "git commit -qam crlf");
    let exact = blame(&mut agent, json!({"exact": true}));
    assert_eq!(by(&exact), ["Ada"; 4]);
    assert_eq!(authors(&mut agent), ["Ada", "Ada", BOB, "Ada"]);
    // An indent that is not committed.
    world.file("g", "if a:\nb\n");
    sh(&world, "git add g && git commit -qm g");
    world.file("g", "if a:\n    b\n");
    let indented = blame(&mut agent, json!({"path": "g"}));
    assert_eq!(by(&indented), ["Ada", "Ada"]);
    let exact = blame(&mut agent, json!({"path": "g", "exact": true}));
    assert_eq!(by(&exact), ["Ada", "unknown"]);
}

#[test]
fn hist11_a_moved_file_is_found_under_its_earlier_name() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    // Not committed, then committed.
    sh(&world, "mkdir d && mv f d/g");
    assert_eq!(agent.state("f"), "deleted");
    let expected = ["Ada", "Ada", BOB];
    let moved = blame(&mut agent, json!({"path": "d/g"}));
    assert_eq!(by(&moved), expected);
    sh(&world, "git add -A && git commit -qm move");
    let moved = blame(&mut agent, json!({"path": "d/g"}));
    assert_eq!(by(&moved), expected);
    assert_eq!(moved["cause"], Value::Null);
}

#[test]
fn hist11_what_is_in_no_commit_stays_unknown() {
    let world = World::new();
    let mut agent = world.session("a");
    world.file("f", "one 1\n");
    let none = |agent: &mut Session, params: Value| {
        let all = blame(agent, params);
        assert_eq!(by(&all), ["unknown"], "{all}");
        assert_eq!(all["cause"], Value::Null, "{all}");
    };
    // No repository, no commit, not in the commit, and not text.
    none(&mut agent, json!({}));
    sh(&world, "git init -q -b main");
    none(&mut agent, json!({}));
    world.file("binary", "a\0b\nc\n");
    sh(&world, "git add binary && git commit -qm binary");
    none(&mut agent, json!({}));
    none(&mut agent, json!({"path": "binary"}));
}

/// The commit where a shallow clone ends may not have added its lines.
#[test]
fn hist11_no_author_is_named_where_a_shallow_clone_ends() {
    let world = World::new();
    let origin = world.outside().join("origin");
    fs::create_dir_all(&origin).unwrap();
    repository(&world);
    let clone = format!(
        "mv .git {0}/.git && git -C {0} reset -q --hard && rm f && \
         git clone -q --depth 1 file://{0} . && echo four 4 >> f && \
         GIT_AUTHOR_NAME=Eve git commit -qam fourth",
        origin.display()
    );
    sh(&world, &clone);
    let mut agent = world.session("a");
    assert_eq!(authors(&mut agent), ["^", "^", "^", "Eve"]);
    let said = world.run(&["blame", "f"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.starts_with('^'), "{said}");
}

/// A repository names programs and files for `git blame`.
#[test]
fn hist11_nothing_that_the_repository_configures_counts() {
    let world = World::new();
    repository(&world);
    let mark = world.outside().join("ran");
    let program = world.outside().join("program");
    fs::write(
        &program,
        format!("#!/bin/sh\ntouch {}\ncat\n", mark.display()),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    world.file(".gitattributes", "* diff=evil filter=evil\n");
    let head = "git rev-parse HEAD > .git-blame-ignore-revs";
    sh(&world, head);
    for key in [
        "alias.blame",
        "core.fsmonitor",
        "core.pager",
        "diff.evil.command",
        "diff.evil.textconv",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.process",
        "filter.evil.smudge",
        "pager.blame",
    ] {
        let bang = if key.starts_with("alias") { "!" } else { "" };
        sh(
            &world,
            &format!("git config {key} '{bang}{}'", program.display()),
        );
    }
    sh(
        &world,
        "git config blame.ignoreRevsFile .git-blame-ignore-revs; \
         git config blame.coloring highlightRecent; git config blame.date relative; \
         git config blame.blankBoundary true; git config core.worktree /nowhere",
    );
    let mut agent = world.session("a");
    agent.read("f");
    assert_eq!(authors(&mut agent), ["Ada", "Ada", BOB]);
    assert!(!mark.exists());
}

#[test]
fn hist11_where_git_cannot_be_run_the_answer_says_so() {
    let mut world = World::asleep();
    repository(&world);
    world.set_env("PATH", "/nowhere");
    world.start();
    let mut agent = world.session("a");
    let all = blame(&mut agent, json!({}));
    assert_eq!(by(&all), ["unknown"; 3]);
    let cause = text(&all, "cause");
    assert!(
        cause.starts_with("git cannot be run: there is no git"),
        "{cause}"
    );
}

#[test]
fn hist11_a_note_of_the_commit_names_the_agent() {
    let world = World::new();
    repository(&world);
    let mut agent = world.session("a");
    agent.read("f");
    write(&mut agent, "f", "zero 0\none 1\ntwo 2\nthree 3\nfour 4\n");
    sh(&world, "git commit -qam agents && git config user.name c");
    sh(&world, "git config user.email c@example.invalid");
    let attested = world.run(&["attest", "--write"]);
    assert!(attested.status.success(), "{attested:?}");
    // Another clone, in which the file has another name and lines before.
    let other = World::new();
    let clone = format!(
        "git clone -q {} . && git fetch -q origin refs/notes/ai:refs/notes/ai && \
         git mv f 'my file' && (echo first; cat 'my file') > g && mv g 'my file' && \
         git commit -qam moved",
        world.workspace().display()
    );
    sh(&other, &clone);
    let mut reader = other.session("b");
    let expected = ["Ada", "agent", "Ada", "Ada", BOB, "agent"];
    let all = blame(&mut reader, json!({"path": "my file"}));
    let kinds: Vec<String> = { all["lines"].as_array().unwrap().iter() }
        .map(|line| match line["author"]["session"].as_str() {
            Some("a") => text(&line["author"], "kind"),
            _ => text(&line["commit"], "author"),
        })
        .collect();
    assert_eq!(kinds, expected, "{all}");
    assert_eq!(all["lines"][1]["evidence"], "commit");
    // A note that is none changes nothing.
    sh(
        &other,
        "git notes --ref=ai add -f -m 'f 1-9' HEAD~1 && git pack-refs --all",
    );
    let all = blame(&mut reader, json!({"path": "my file"}));
    assert_eq!(by(&all), ["Ada", "Ada", "Ada", "Ada", BOB, "Ada"]);
}

/// The daemon of the worktree where a commit was made has recorded who wrote
/// its lines.
#[test]
fn hist11_another_worktrees_daemon_names_the_agent() {
    let (mut one, other) = two();
    let mut agent = Agent::new(&one, "writer");
    agent.edit("a.txt", "line 5\n", "five of the agent\n");
    drop(agent);
    replace(&one, "a.txt", "line 9", "nine of the user");
    git(&one, &["commit", "-qam", "both"]);
    git(&other, &["merge", "-q", "main"]);
    let sessions = || {
        let blame = other.client().ok(
            "file/blame",
            json!({"path": "a.txt", "range": {"start": 5, "end": 9}}),
        );
        let lines = blame["lines"].as_array().unwrap().iter();
        let sessions = lines.map(|line| {
            assert_eq!(line["evidence"], "commit", "{line}");
            assert_ne!(line["commit"]["id"], Value::Null, "{line}");
            line["author"]["session"].clone()
        });
        sessions.collect::<Vec<_>>()
    };
    assert_eq!(
        sessions(),
        [
            json!("writer"),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null
        ]
    );
    // It is not started for that.
    one.kill();
    assert_eq!(sessions(), [(); 5].map(|()| Value::Null));
}
