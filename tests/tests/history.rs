//! Earlier versions of files: their names, who wrote which line, and how to
//! restore them (HIST).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::parts::not_tested;
use touchmark_tests::snippets::{of, run_shell};
use touchmark_tests::terminal::without_times;
use touchmark_tests::wire::Client;
use touchmark_tests::{Session, Way, World, sha256, text, user};

/// A session id as long as those of real agents.
const AGENT: &str = "0199c0de-7a1b-7e44-9d7e-1f2e3d4c5b6a";

fn out(world: &World, args: &[&str]) -> String {
    let output = world.run(args);
    assert!(
        output.status.success(),
        "touchmark {args:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command, which must fail with this exit code. Returns its error
/// output.
fn err(world: &World, args: &[&str], code: i32) -> String {
    let output = world.run(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "touchmark {args:?}\n{said}"
    );
    said
}

fn write(agent: &mut Session, path: &str, content: &str) {
    let params = json!({"path": path, "text": content, "force": true});
    agent.ok("file/write", params);
}

fn on_disk(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

/// Returns the clocks of a file's versions, the oldest first.
fn clocks(agent: &mut Session, path: &str) -> Vec<String> {
    let versions = agent.history(path);
    let newest_first = versions.iter().map(|version| text(version, "clock"));
    let mut clocks: Vec<String> = newest_first.collect();
    clocks.reverse();
    clocks
}

fn content(client: &mut Client, path: &str, at: &str) -> String {
    let content = client.ok("file/content", json!({"path": path, "at": at}));
    text(&content, "text")
}

/// Makes three versions: the original, the agent's, the user's.
fn three(world: &World) -> Session {
    world.file("src/a.txt", "one\ntwo\nthree\n");
    let mut agent = world.session(AGENT);
    agent.read("src/a.txt");
    agent.ok("checkpoint/create", json!({}));
    write(&mut agent, "src/a.txt", "one\n2\nthree\n");
    user::write(&world.path("src/a.txt"), "one\n2\nthree\nmine\n");
    agent.sync();
    agent
}

#[test]
fn hist1_a_version_goes_by_many_names() {
    let mut world = World::new();
    let mut agent = three(&world);
    let clocks = clocks(&mut agent, "src/a.txt");
    assert_eq!(clocks.len(), 3);
    let texts = [
        "one\ntwo\nthree\n",
        "one\n2\nthree\n",
        "one\n2\nthree\nmine\n",
    ];
    let mut client = world.client();
    for (clock, held) in clocks.iter().zip(texts) {
        assert_eq!(content(&mut client, "src/a.txt", clock), held);
        let (_, n) = clock.split_once(':').unwrap();
        assert_eq!(content(&mut client, "src/a.txt", n), held);
        assert_eq!(content(&mut client, "src/a.txt", &sha256(held)[..8]), held);
        // As people say it.
        assert_eq!(out(&world, &["show", &format!("src/a.txt@{n}")]), held);
    }
    for (at, held) in [
        ("now", texts[2]),
        ("k1", texts[0]),
        ("agent-1/k1", texts[0]),
        (&format!("{AGENT}/k1"), texts[0]),
        ("seen:agent-1", texts[1]),
        ("@0s", texts[2]),
    ] {
        assert_eq!(content(&mut client, "src/a.txt", at), held, "{at}");
        assert_eq!(
            out(&world, &["show", "src/a.txt", "--at", at]),
            held,
            "{at}"
        );
    }
    // A clock between two versions names the older, and so does a time.
    let versions = agent.history("src/a.txt");
    let time = |version: &Value| version["time"].as_u64().unwrap();
    let then = time(&versions[1]);
    let exact = format!("@{}.{:03}Z", date(then / 1000), then % 1000);
    // The newest of those of that millisecond.
    let had = versions.iter().position(|version| time(version) <= then);
    let held = texts[2 - had.unwrap()];
    assert_eq!(content(&mut client, "src/a.txt", &exact), held);

    let mut refused = |at: &str, code: &str| {
        client.refused("file/content", json!({"path": "src/a.txt", "at": at}), code);
    };
    refused("@10m", "notFound");
    refused("1", "notFound");
    refused("000000", "notFound");
    refused("1:1", "unknownClock");
    refused("99999999", "unknownClock");
    refused("k9", "notFound");
    refused("agent-1/k9", "notFound");
    refused("nobody/k1", "unknownSession");
    refused("seen:nobody", "unknownSession");
    refused("yesterday", "invalidParams");
    let mut other = world.session("other");
    let mut client = world.client();
    client.refused(
        "file/content",
        json!({"path": "src/a.txt", "at": "seen:other"}),
        "notFound",
    );
    // A checkpoint's number is no other session's.
    other.ok("checkpoint/create", json!({}));
    assert_eq!(content(&mut client, "src/a.txt", "other/k2"), texts[2]);
    client.refused(
        "file/content",
        json!({"path": "src/a.txt", "at": "other/k1"}),
        "notFound",
    );
    world.healthy();
}

/// Returns a time in seconds in RFC 3339 format, without the time zone.
fn date(seconds: u64) -> String {
    let output = Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%S"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn hist1_a_name_with_an_at_in_it_is_a_file_if_there_is_one() {
    let mut world = World::new();
    world.file("a@17", "a file\n");
    world.file("b@x", "one\n");
    let mut agent = world.session("s");
    agent.read("b@x");
    write(&mut agent, "b@x", "two\n");
    assert_eq!(out(&world, &["show", "a@17"]), "a file\n");
    assert_eq!(out(&world, &["show", "b@x@seen:s"]), "two\n");
    let first = clocks(&mut agent, "b@x")[0].clone();
    assert_eq!(out(&world, &["show", "b@x", "--at", &first]), "one\n");
    world.healthy();
}

#[test]
fn hist2_each_line_has_its_author() {
    let mut world = World::new();
    let mut agent = three(&world);
    let mut client = world.client();
    let blame = client.ok("file/blame", json!({"path": "src/a.txt"}));
    let lines: Vec<String> = blame["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {}", text(line, "text"), text(&line["author"], "kind")))
        .collect();
    let told = ["one unknown", "2 agent", "three unknown", "mine user"];
    assert_eq!(lines, told);
    let part = client.ok(
        "file/blame",
        json!({"path": "src/a.txt", "range": {"start": 2, "end": 3}}),
    );
    assert_eq!(
        (&part["start"], part["lines"].as_array().unwrap().len()),
        (&json!(2), 2)
    );

    let diff = client.ok(
        "file/diff",
        json!({"path": "src/a.txt", "from": "k1", "context": 0}),
    );
    let hunks = diff["hunks"].as_array().unwrap();
    let lines = hunks
        .iter()
        .flat_map(|hunk| hunk["lines"].as_array().unwrap());
    let lines: Vec<String> = lines
        .map(|line| {
            let (kind, by) = (text(line, "kind"), text(&line["author"], "kind"));
            format!("{kind} {} {by}", text(line, "text"))
        })
        .collect();
    let told = ["removed two agent", "added 2 agent", "added mine user"];
    assert_eq!(lines, told);
    // All files: the same, each with its hunks.
    let all = client.ok("file/diff", json!({"from": "k1"}));
    assert_eq!(all["files"][0]["path"], "src/a.txt", "{all}");
    assert_eq!(all["files"][0]["lines"], json!({"added": 2, "removed": 1}));
    assert!(all["hunks"].is_null(), "{all}");
    let same = client.ok("file/diff", json!({"path": "src/a.txt", "from": "now"}));
    assert_eq!((&same["files"], &same["hunks"]), (&json!([]), &json!([])));

    // A file that no session has named has no author.
    world.file("new.txt", "a\nb\n");
    let blame = client.ok("file/blame", json!({"path": "new.txt"}));
    assert_eq!(blame["lines"].as_array().unwrap().len(), 2);
    assert_eq!(blame["lines"][0]["author"]["kind"], "unknown");
    assert!(blame["clock"].is_null(), "{blame}");
    agent.sync();
    world.healthy();
}

#[test]
fn hist2_a_patch_is_one_that_git_takes() {
    let mut world = World::new();
    let now = "one\n2\nthree\nmine";
    let mut agent = three(&world);
    user::write(&world.path("src/a.txt"), now);
    write(&mut agent, "new.txt", "made\n");
    agent.sync();
    let patch = out(&world, &["diff"]);
    assert!(patch.contains("@@ agent-1, you"), "{patch}");
    // Within another repository git would pass over what is not its own.
    user::git(world.workspace(), &["init", "-q"]);
    let mut git = Command::new("git")
        .args(["apply", "-R"])
        .current_dir(world.workspace())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin
        .take()
        .unwrap()
        .write_all(patch.as_bytes())
        .unwrap();
    assert!(git.wait().unwrap().success(), "{patch}");
    assert_eq!(on_disk(&world, "src/a.txt"), "one\ntwo\nthree\n");
    assert!(!world.path("new.txt").exists());
    world.healthy();
}

#[test]
fn hist2_nobody_is_named_for_lines_that_may_be_anothers() {
    let mut world = World::new();
    world.configure("[contents]\nfile = \"64 B\"\n");
    world.restart();
    world.file("a.txt", "one\n");
    let mut agent = world.session("s");
    agent.read("a.txt");
    // The user's line comes with so much that the version is not kept.
    let large = format!("one\nmine\n{}", "x\n".repeat(100));
    user::write(&world.path("a.txt"), &large);
    agent.sync();
    write(&mut agent, "a.txt", "one\nmine\nagent's\n");
    let mut client = world.client();
    let blame = client.ok("file/blame", json!({"path": "a.txt"}));
    let kinds: Vec<&Value> = blame["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| &line["author"]["kind"])
        .collect();
    assert_eq!(kinds, ["unknown", "unknown", "unknown"], "{blame}");
    let clock = clocks(&mut agent, "a.txt")[1].clone();
    let refused = client.refused(
        "file/content",
        json!({"path": "a.txt", "at": clock}),
        "notKept",
    );
    assert!(
        text(&refused.data, "cause").contains("209 bytes"),
        "{refused}"
    );
    world.healthy();
}

#[test]
fn hist3_what_is_not_kept_says_why() {
    let mut world = World::new();
    world.file(".env", "TOKEN=1\n");
    world.file("a.txt", "one\n");
    let mut agent = world.session("s");
    agent.read(".env");
    agent.read("a.txt");
    user::write(&world.path(".env"), "TOKEN=2\n");
    user::write(&world.path("a.txt"), "two\n");
    agent.sync();
    let mut client = world.client();
    let mut not_kept = |path: &str, at: &str| {
        let refused = client.refused("file/content", json!({"path": path, "at": at}), "notKept");
        text(&refused.data, "cause")
    };
    let first = clocks(&mut agent, ".env")[0].clone();
    assert!(not_kept(".env", &first).contains("secret"));
    let said = err(&world, &["restore", "--yes", &format!(".env@{first}")], 4);
    assert!(
        said.contains("secret") && said.contains("contents.exclude"),
        "{said}"
    );
    assert_eq!(on_disk(&world, ".env"), "TOKEN=2\n");

    let first = clocks(&mut agent, "a.txt")[0].clone();
    agent.client.ok("contents/forget", json!({}));
    assert!(not_kept("a.txt", &first).contains("no longer"));
    // What it holds now can be had all the same.
    let mut client = world.client();
    assert_eq!(content(&mut client, "a.txt", "now"), "two\n");
    assert_eq!(content(&mut client, "a.txt", &sha256("two\n")), "two\n");
    // One file that cannot be compared keeps none from being shown.
    user::write(&world.path("a.txt"), "three\n");
    agent.sync();
    let all = client.ok("file/diff", json!({"from": "seen:s"}));
    let files = all["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{all}");
    assert!(files.iter().all(|file| file["cause"].is_string()), "{all}");
    world.healthy();
}

#[test]
fn hist4_a_file_gets_back_what_it_held() {
    let mut world = World::new();
    let mut agent = three(&world);
    agent.read("src/a.txt");
    let first = clocks(&mut agent, "src/a.txt")[0].clone();
    let named = format!("src/a.txt@{first}");
    // There is no user to ask here.
    assert!(err(&world, &["restore", &named], 2).contains("--yes"));
    assert!(err(&world, &["restore", "--yes", "src/a.txt"], 2).contains("which version"));
    let shown = out(&world, &["restore", &named, "--dry-run"]);
    assert!(shown.contains("-mine") && shown.contains("+two"), "{shown}");
    assert_eq!(on_disk(&world, "src/a.txt"), "one\n2\nthree\nmine\n");

    let done = out(&world, &["restore", "--yes", "--json", &named]);
    let done: Value = serde_json::from_str(&done).unwrap();
    let file = &done["files"][0];
    assert_eq!(
        (&file["path"], &file["outcome"], &file["hunks"]),
        (&json!("src/a.txt"), &json!("restored"), &json!(2))
    );
    assert_eq!(on_disk(&world, "src/a.txt"), "one\ntwo\nthree\n");
    // What was there is kept, and is a version.
    let kept = file["recovered"][0].as_str().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "one\n2\nthree\nmine\n");
    assert_eq!(agent.state("src/a.txt"), "stale");
    assert_eq!(agent.story("src/a.txt").last().unwrap(), "user unmarked");
    let again = out(&world, &["restore", "--yes", &named]);
    assert!(again.contains("already"), "{again}");
    let back = clocks(&mut agent, "src/a.txt")[2].clone();
    out(&world, &["restore", "--yes", &format!("src/a.txt@{back}")]);
    assert_eq!(on_disk(&world, "src/a.txt"), "one\n2\nthree\nmine\n");
    world.healthy();
}

#[test]
fn hist4_what_is_gone_comes_back_and_what_was_not_there_goes() {
    let mut world = World::new();
    world.file("dir/a.sh", "one\n");
    fs::set_permissions(world.path("dir/a.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut agent = world.session("s");
    agent.read("dir/a.sh");
    write(&mut agent, "new.txt", "made\n");
    fs::remove_dir_all(world.path("dir")).unwrap();
    agent.sync();
    let first = clocks(&mut agent, "dir/a.sh")[0].clone();
    out(&world, &["restore", "--yes", &format!("dir/a.sh@{first}")]);
    assert_eq!(on_disk(&world, "dir/a.sh"), "one\n");

    // The version in which it was gone removes it, and keeps what it held.
    let gone = clocks(&mut agent, "dir/a.sh")[1].clone();
    let mut client = world.client();
    client.refused(
        "file/content",
        json!({"path": "dir/a.sh", "at": gone}),
        "notFound",
    );
    let done = out(
        &world,
        &["restore", "--yes", "--json", &format!("dir/a.sh@{gone}")],
    );
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!(done["files"][0]["outcome"], "removed", "{done}");
    assert!(!world.path("dir/a.sh").exists());
    let kept = done["files"][0]["recovered"][0].as_str().unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "one\n");
    // A directory where the file was is left alone.
    fs::create_dir_all(world.path("dir/a.sh/below")).unwrap();
    err(
        &world,
        &["restore", "--yes", &format!("dir/a.sh@{first}")],
        4,
    );
    assert!(world.path("dir/a.sh/below").is_dir());
    err(&world, &["restore", "--yes", "../a@1"], 4);
    world.healthy();
}

#[test]
fn hist5_the_log_is_newest_first_and_by_whom_one_asks_for() {
    let mut world = World::new();
    let mut agent = three(&world);
    write(&mut agent, "b.txt", "new\n");
    let log = |args: &[&str]| -> Vec<String> {
        let args = [&["log"], args].concat();
        let printed = out(&world, &args);
        let lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        let rows = without_times(&lines).into_iter();
        rows.map(|row| row.replace(" | ", " ")).collect()
    };
    let all = log(&[]);
    assert_eq!(all.len(), 4, "{all:#?}");
    assert!(all[3].starts_with("k1 "), "{all:#?}");
    assert!(
        all[0].contains("agent-1") && all[0].contains("created b.txt"),
        "{all:#?}"
    );
    assert!(
        all[1].contains("you") && all[2].contains("agent-1"),
        "{all:#?}"
    );
    assert_eq!(log(&["--by", "me"]), [all[1].clone()]);
    assert_eq!(log(&["--by", "agent-1"]).len(), 3);
    assert_eq!(
        log(&["--by", "command"]),
        ["no versions of tracked files were found"]
    );
    assert_eq!(log(&["src"]).len(), 2);
    assert_eq!(log(&["b.txt", "src/a.txt"]), all[..3]);
    assert_eq!(log(&["-n", "1"]), [all[0].clone()]);
    assert_eq!(log(&["--since", "1h"]), all);
    assert_eq!(log(&["--since", "0s"]).len(), 1);
    let stat = log(&["--stat", "src"]);
    assert!(
        stat[0].contains("+1 -0") && stat[1].contains("+1 -1"),
        "{stat:#?}"
    );
    let patch = log(&["-p", "src"]).join("\n");
    assert!(patch.contains("+mine") && patch.contains("-two"), "{patch}");
    let json = out(&world, &["log", "--json", "-p"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json["entries"][2]["hunks"][0]["lines"][1]["text"], "two",
        "{json}"
    );
    world.healthy();
}

#[test]
fn hist5_what_is_printed_fits_into_eighty_columns() {
    let mut world = World::new();
    three(&world);
    let commands: &[&[&str]] = &[
        &["log", "--stat"],
        &["log", "-p"],
        &["diff"],
        &["diff", "--stat"],
        &["blame", "src/a.txt"],
        &["recovered"],
    ];
    for command in commands {
        for line in out(&world, command).lines() {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
            assert!(!line.contains(&AGENT[..8]), "{command:?}: {line}");
        }
    }
    world.healthy();
}

#[test]
fn hist5_what_a_list_names_brings_the_lines_back() {
    let mut world = World::new();
    world.file("a b.txt", "one\n");
    let mut agent = world.session("s");
    agent.read("a b.txt");
    let edit = agent.begin("a b.txt", Some("agent's\n")).unwrap();
    user::write(&world.path("a b.txt"), "the user's\n");
    agent.sync();
    user::write(&world.path("a b.txt"), "agent's\n");
    let done = agent.commit(&edit, "a b.txt", Some("agent's\n"));
    assert_eq!(done["outcome"], "clobbered", "{done}");
    let said = out(&world, &["modified", "--session", "s"]);
    let (_, command) = said.split_once("were overwritten (").expect(&said);
    let (command, _) = command.split_once(')').unwrap();
    assert!(command.starts_with("touchmark restore "), "{said}");
    shell(&world, command);
    assert_eq!(on_disk(&world, "a b.txt"), "the user's\nagent's\n");
    world.healthy();
}

fn shell(world: &World, command: &str) -> String {
    let snippet = touchmark_tests::snippets::Snippet {
        language: "sh".into(),
        line: 0,
        text: command.to_owned(),
    };
    run_shell(world, "a notice", &snippet)
}

#[test]
fn hist7_the_authors_of_a_file_as_agent_trace_has_them() {
    let mut world = World::new();
    let mut agent = three(&world);
    agent.ok(
        "model/record",
        json!({"modelId": "claude-x", "providerId": "anthropic", "mode": "act"}),
    );
    let record = out(&world, &["blame", "src/a.txt", "--format", "agent-trace"]);
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["version"], "0.1.0");
    let file = &record["files"][0];
    assert_eq!(file["path"], "src/a.txt");
    let conversations = file["conversations"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = conversations
        .iter()
        .map(|one| (&one["contributor"]["type"], &one["ranges"]))
        .collect();
    let range = |start: u32, end: u32| json!({"start_line": start, "end_line": end});
    assert_eq!(
        told,
        [
            (&json!("unknown"), &json!([range(1, 1), range(3, 3)])),
            (&json!("ai"), &json!([range(2, 2)])),
            (&json!("human"), &json!([range(4, 4)])),
        ]
    );
    assert_eq!(
        conversations[1]["contributor"]["model_id"],
        "anthropic/claude-x"
    );
    let session = format!("urn:touchmark:session:{AGENT}");
    assert_eq!(conversations[1]["related"][0]["url"], session);
    world.healthy();
}

/// The page about versions runs verbatim.
#[test]
fn hist8_the_page_about_versions_runs() {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/history.md"));
    let snippets = of(page);
    assert!(snippets.len() >= 5, "{snippets:?}");
    let world = World::asleep();
    // The workspace is this directory, whatever lies above it.
    world.file(".touchmark.toml", "");
    for snippet in snippets {
        match snippet.language.as_str() {
            "sh" => drop(run_shell(&world, "history.md", &snippet)),
            "text" => {}
            other => panic!("no author runs {other:?}"),
        }
    }
    assert_eq!(on_disk(&world, "cart.txt"), "apples\npears\n");
    let _ = world.run(&["stop"]);
}

#[test]
fn hist9_a_shell_completes_versions_and_sessions() {
    let mut world = World::new();
    let mut agent = three(&world);
    let (_, n) = clocks(&mut agent, "src/a.txt")[1]
        .clone()
        .split_once(':')
        .map(|(e, n)| (e.to_owned(), n.to_owned()))
        .unwrap();
    let offered = |words: &[&str]| {
        let mut command = world.command(&[&["--", "touchmark"], words].concat());
        let output = command.env("COMPLETE", "fish").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let versions = offered(&["show", "src/a.txt@"]);
    let offers = |value: &str| {
        versions
            .lines()
            .any(|line| line.split('\t').next() == Some(value))
    };
    for version in [&n, "agent-1/k1", "seen:agent-1", "now"] {
        assert!(
            offers(&format!("src/a.txt@{version}")),
            "{version}: {versions}"
        );
    }
    assert!(offered(&["show", "src/"]).contains("src/a.txt"));
    let whose = offered(&["log", "--by", ""]);
    assert!(
        whose.contains("me\n") && whose.contains("agent-1"),
        "{whose}"
    );
    assert!(offered(&["diff", "--from", "agent"]).contains("agent-1/k1"));
    world.healthy();
}

/// Returns what a shell prints on a terminal when these keys are typed.
fn typed(world: &World, shell: &str, keys: &str) -> String {
    let mut command = Command::new("script");
    command
        .args(["-q", "-e", "-c", shell, "/dev/null"])
        .current_dir(world.workspace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env("TERM", "dumb");
    world.dress(&mut command);
    let own = touchmark_tests::world::binary();
    let paths = std::env::var("PATH").unwrap();
    let paths = format!("{}:{paths}", own.parent().unwrap().display());
    let mut child = command.env("PATH", paths).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(keys.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

#[test]
fn hist9_bash_and_zsh_complete_versions_sessions_and_undos() {
    let zsh = Command::new("zsh").arg("-c").arg(":").output().is_ok();
    let shells = [
        (
            "bash --norc --noprofile -i",
            "source <(touchmark completions bash)\n",
        ),
        (
            "zsh -f -i",
            "autoload -Uz compinit; compinit -u -D; source <(touchmark completions zsh)\n",
        ),
    ];
    for (shell, setup) in shells {
        if shell.starts_with("zsh") && !zsh {
            not_tested("zsh completes versions: zsh is not installed");
            continue;
        }
        let mut world = World::new();
        let mut agent = three(&world);
        agent.ok("undo", json!({"session": AGENT}));
        assert_eq!(on_disk(&world, "src/a.txt"), "one\ntwo\nthree\nmine\n");
        // What was completed is run: what it prints is what was named.
        let said = typed(
            &world,
            shell,
            &format!(
                "{setup}touchmark show src/a.txt@see\t> seen\n\
                 touchmark log --by ag\t> by\n\
                 touchmark blame src/a.txt --at agent-1/\t> blame\n\
                 touchmark undo ag\t--dry-run > undo\n\
                 touchmark redo u\t--yes > redo\n\
                 exit\n"
            ),
        );
        let written = |name: &str| {
            let text = fs::read_to_string(world.path(name));
            text.unwrap_or_else(|error| panic!("{shell}: {name}: {error}\n{said}"))
        };
        assert_eq!(written("seen"), "one\n2\nthree\n", "{said}");
        assert!(written("by").contains("agent-1  edited"), "{said}");
        assert!(written("blame").contains("  two\n"), "{said}");
        assert!(written("undo").contains("src/a.txt"), "{said}");
        assert!(written("redo").contains("put back  src/a.txt"), "{said}");
        assert_eq!(on_disk(&world, "src/a.txt"), "one\n2\nthree\nmine\n");
        world.healthy();
    }
}

/// What `activity/list` answers, as `session kind path`, the newest first.
fn activity(client: &mut Client, ask: Value) -> Vec<String> {
    let answer = client.ok("activity/list", ask);
    let rows = answer["rows"].as_array().unwrap().iter();
    let told = rows.map(|row| {
        let path = row["path"].as_str().unwrap_or("-");
        format!("{} {} {path}", text(row, "session"), text(row, "kind"))
    });
    told.collect()
}

#[test]
fn hist7_what_sessions_did_is_listed_with_its_time() {
    let mut world = World::new();
    let (mut a, mut b) = (world.session("a"), world.session("b"));
    let mut client = world.client();
    world.file("f", "one\n");
    world.file("g", "one\n");
    a.read("f");
    let read = client.ok("activity/list", json!({}))["rows"][0].clone();
    b.read("f");
    b.read("g");
    // A user's save that one session has not seen, and two do not care about.
    world.file("f", "two\n");
    a.refused("edit/begin", json!({"files": [{"path": "f"}]}), "stale");
    a.refused("edit/begin", json!({"files": [{"path": "g"}]}), "notRead");
    b.edit(Way::Declared, "f", "three\n", |path| {
        fs::write(path, "three\n").unwrap();
    });
    a.sync();
    let all = activity(&mut client, json!({}));
    let expected = [
        "a notRead g",
        "a stale f",
        "b read g",
        "b read f",
        "a read f",
    ];
    let (newest, rest) = all.split_at(all.len() - expected.len());
    assert_eq!(rest, expected, "{all:?}");
    assert!(
        newest
            .iter()
            .all(|row| row == "b overwrote f" || row == "b stale f"),
        "{all:?}"
    );
    assert_eq!(
        activity(&mut client, json!({"session": "a"})),
        [
            all[all.len() - 5].clone(),
            all[all.len() - 4].clone(),
            all[all.len() - 1].clone()
        ]
    );

    // Page by page, each row once.
    let mut paged = Vec::new();
    let mut ask = json!({"limit": 1});
    loop {
        let answer = client.ok("activity/list", ask.clone());
        paged.extend(activity(&mut client, ask.clone()));
        if answer["more"].is_null() {
            break;
        }
        ask["before"] = answer["more"].clone();
    }
    assert_eq!(paged, all);
    // After and before the first read.
    let clock = text(&read, "clock");
    assert_eq!(
        activity(&mut client, json!({"since": clock})),
        all[..all.len() - 1]
    );
    assert_eq!(activity(&mut client, json!({"until": clock})), ["a read f"]);
    let whole = client.ok("activity/list", json!({}));
    assert!(whole["completeSince"].as_u64() <= read["time"].as_u64());
    // Versions up to a moment.
    let log = client.ok("file/log", json!({"until": clock}));
    assert_eq!(log["entries"], json!([]), "the save came later");
    let log = client.ok("file/log", json!({"until": "@0s"}));
    assert!(!log["entries"].as_array().unwrap().is_empty());

    // What the daemon drops at its end is said to be missing.
    world.stop();
    world.start();
    let mut client = world.client();
    let answer = client.ok("activity/list", json!({}));
    assert_eq!(answer["rows"], json!([]));
    assert!(answer["completeSince"].as_u64() > read["time"].as_u64());
    world.healthy();
}

/// A comparison takes time in proportion to the file: the command answers
/// within its deadline, although each line was replaced twice.
#[test]
fn hist_a_large_file_that_was_replaced_is_compared_in_time() {
    let world = World::new();
    let lines = |word: &str| -> String {
        let lines = (0..60_000).map(|line| format!("{word} {line}\n"));
        lines.collect()
    };
    world.file("large.txt", lines("one"));
    let mut agent = world.session(AGENT);
    agent.read("large.txt");
    for word in ["two", "three"] {
        user::write(&world.path("large.txt"), &lines(word));
        agent.sync();
    }
    let before = clocks(&mut agent, "large.txt").pop().unwrap();
    let after = lines("three").replacen("three 7\n", "seven\n", 1);
    user::write(&world.path("large.txt"), &after);
    agent.sync();
    let said = out(&world, &["diff", "large.txt", "--from", &before]);
    assert!(said.contains("-three 7\n"), "{said}");
    assert!(said.contains("+seven\n"), "{said}");
}

/// In a file of 60,000 lines, which has 2.5 MB.
#[test]
fn hist12_a_line_of_a_large_file_has_its_author_and_is_undone() {
    let world = World::new();
    let lines = |by: &dyn Fn(usize) -> &'static str| -> String {
        let lines = (0..60_000).map(|at| format!("{} {at:06} {}\n", by(at), "x".repeat(28)));
        lines.collect()
    };
    let agents = |at: usize| at % 10_000 == 7;
    let mine = |at: usize| at % 15_000 == 9;
    let base = lines(&|_| "base");
    world.file("large.txt", &base);
    let mut agent = world.session(AGENT);
    agent.read("large.txt");
    let by_agent = lines(&|at| if agents(at) { "agent" } else { "base" });
    write(&mut agent, "large.txt", &by_agent);
    let both = lines(&|at| match (agents(at), mine(at)) {
        (true, _) => "agent",
        (_, true) => "mine",
        _ => "base",
    });
    user::replace(&world.path("large.txt"), &both);
    agent.sync();
    let said = out(&world, &["blame", "large.txt"]);
    assert_eq!(said.lines().count(), 60_000);
    for line in said.lines() {
        let by = match () {
            () if line.contains(" base ") => " unknown ",
            () if line.contains(" mine ") => " you ",
            () => " agent-1 ",
        };
        assert!(line.contains(by), "{by}: {line}");
    }
    out(&world, &["undo", AGENT, "--yes"]);
    let left = lines(&|at| if mine(at) { "mine" } else { "base" });
    assert!(on_disk(&world, "large.txt") == left);
}

/// A long file is asked for in parts. The later parts are found out with the
/// first one, and are kept for a moment; but each part is about what the file
/// is when it is asked for.
#[test]
fn hist2_a_later_part_of_a_long_blame_is_not_of_an_earlier_state() {
    const PART: u32 = 40_000;
    let world = World::new();
    let lines = |of: &str| -> String {
        let lines = (1..=2 * PART).map(|line| format!("{of} {line}\n"));
        lines.collect()
    };
    world.file("long.txt", lines("base"));
    let mut agent = world.session(AGENT);
    agent.read("long.txt");
    let by_agent = lines("base").replacen("base 50000\n", "agent's 50000\n", 1);
    write(&mut agent, "long.txt", &by_agent);
    let part = |agent: &mut Session, from: u32| {
        let range = json!({"start": from, "end": from + PART - 1});
        let ask = json!({"path": "long.txt", "range": range});
        agent.client.ok("file/blame", ask)
    };
    let author = |part: &Value, line: u32| {
        let at = (line - 1) % PART;
        text(&part["lines"][at as usize]["author"], "kind")
    };

    let first = part(&mut agent, 1);
    assert_eq!(text(&first["lines"][0], "text"), "base 1");
    let second = part(&mut agent, PART + 1);
    assert_eq!(second["hash"], first["hash"]);
    assert_eq!(second["start"], PART + 1);
    assert_eq!(second["lines"].as_array().unwrap().len(), PART as usize);
    assert_eq!(text(&second["lines"][0], "text"), "base 40001");
    assert_eq!(author(&second, 50_000), "agent");
    assert_eq!(author(&second, 50_001), "unknown");
    // Where a client asks once more, since the last part was a whole one.
    let none = part(&mut agent, 2 * PART + 1);
    assert_eq!(
        (&none["hash"], &none["lines"]),
        (&first["hash"], &json!([]))
    );

    // The user says that the line is theirs.
    part(&mut agent, 1);
    out(&world, &["claim", "long.txt:50000", "--by", "you"]);
    assert_eq!(author(&part(&mut agent, PART + 1), 50_000), "user");

    // The user saves the file.
    part(&mut agent, 1);
    let saved = by_agent.replacen("base 50001\n", "mine 50001\n", 1);
    user::write(&world.path("long.txt"), &saved);
    let second = part(&mut agent, PART + 1);
    assert_ne!(second["hash"], first["hash"]);
    assert_eq!(text(&second["lines"][10_000], "text"), "mine 50001");
    assert_eq!(author(&second, 50_001), "user");
}
