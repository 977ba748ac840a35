//! The main story: a real git repository, an agent that reads and edits through
//! the client, a user who saves in every way and switches branches, and
//! `touchmark watch`. Every line must be right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use touchmark_client::blocking::Client;
use touchmark_client::{Hello, Session};
use touchmark_proto::daemon::Program;
use touchmark_tests::user::{self, git};
use touchmark_tests::wire::PATIENCE;
use touchmark_tests::{World, author, sha256, text};

fn file(number: usize) -> String {
    format!("src/m{}/f{number}.rs", number % 4)
}

/// Clones a repository with 30 files and two branches: `other` changes files 10
/// to 14, deletes 15 and adds 99.
fn clone(world: &World) {
    let origin = world.outside().join("origin");
    fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "-q", "-b", "main"]);
    for number in 0..30 {
        let path = origin.join(file(number));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("// file {number}\nfn f{number}() {{}}\n")).unwrap();
    }
    git(&origin, &["add", "-A"]);
    git(&origin, &["commit", "-q", "-m", "main"]);
    git(&origin, &["checkout", "-q", "-b", "other"]);
    for number in 10..15 {
        fs::write(origin.join(file(number)), format!("// other {number}\n")).unwrap();
    }
    fs::remove_file(origin.join(file(15))).unwrap();
    fs::write(origin.join(file(99)), "// new\n").unwrap();
    git(&origin, &["add", "-A"]);
    git(&origin, &["commit", "-q", "-m", "other"]);
    git(&origin, &["checkout", "-q", "main"]);
    git(
        world.workspace(),
        &["clone", "-q", origin.to_str().unwrap(), "."],
    );
}

/// Returns lines of the feed until one satisfies `wanted`.
fn until(lines: &Receiver<Value>, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let Ok(line) = lines.recv_timeout(PATIENCE) else {
            panic!("the feed says no more; it has said {seen:#?}");
        };
        let done = wanted(&line);
        seen.push(line);
        if done {
            return seen;
        }
    }
}

/// Returns the versions among the feed's lines: path to `(author, kind, hash)`,
/// in order.
fn versions(feed: &[Value]) -> BTreeMap<String, Vec<(String, String, String)>> {
    let mut found: BTreeMap<String, Vec<(String, String, String)>> = BTreeMap::new();
    for line in feed.iter().filter(|line| line["type"] == "version") {
        let version = &line["version"];
        found.entry(text(version, "path")).or_default().push((
            author(&version["author"]),
            text(version, "kind"),
            version["hash"].as_str().unwrap_or("").to_owned(),
        ));
    }
    found
}

/// Returns the paths of this session's stale copies among the feed's lines.
fn stale(feed: &[Value], session: &str) -> BTreeSet<String> {
    feed.iter()
        .filter(|line| line["type"] == "stale" && line["session"] == session)
        .map(|line| text(&line["file"], "path"))
        .collect()
}

#[test]
fn an_agent_a_user_and_a_branch_in_a_real_repository() {
    let world = World::asleep();
    clone(&world);
    let mut world = world;
    world.start();

    // The feed, in a second process.
    let mut watch = world
        .command(&["watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let out = BufReader::new(watch.stdout.take().unwrap());
    let (sender, feed) = channel();
    let reader = std::thread::spawn(move || {
        for line in out.lines() {
            let Ok(line) = line else { break };
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    // It listens when it tells of something.
    let mut helper = world.client();
    let end = std::time::Instant::now() + PATIENCE;
    for number in 0.. {
        helper.ok("session/open", json!({"session": format!("probe{number}")}));
        if feed
            .recv_timeout(std::time::Duration::from_millis(100))
            .is_ok()
        {
            break;
        }
        assert!(std::time::Instant::now() < end, "the feed stays silent");
    }

    // The agent reads 20 files and edits 5.
    let client = Client::connect(world.socket(), &Hello::new("story", "1")).unwrap();
    let agent = Program {
        name: "story".into(),
        version: "1".into(),
    };
    let (session, opened) = Session::open_as(&client, "agent", Some(agent)).unwrap();
    assert!(!opened.resumed);
    for number in 0..20 {
        let read = session.read_text(file(number).as_str()).unwrap();
        assert!(read.text.unwrap().contains(&format!("file {number}\n")));
    }
    let edited = |number: usize| format!("// file {number}\nfn f{number}() {{ agent() }}\n");
    for number in 0..5 {
        let done = session
            .write(file(number).as_str(), edited(number).as_bytes())
            .unwrap();
        assert_eq!(done.files.len(), 1);
        assert!(done.changes.is_empty(), "{done:?}");
    }
    // The user saves 5 others.
    user::vim(&world.path(file(5)), "// vim", "auto");
    user::vim(&world.path(file(6)), "// vim", "yes");
    user::sed(&world.path(file(7)), "s/fn/pub fn/");
    user::replace(&world.path(file(8)), "// replaced\n");
    user::write(&world.path(file(9)), "// saved\n");
    let on_disk = |number: usize| sha256(fs::read(world.path(file(number))).unwrap());
    let hashes: Vec<String> = (0..10).map(&on_disk).collect();

    // What the agent is told: those five, nothing else, each once.
    let told = session.changed().unwrap();
    let mut names: Vec<String> = told.iter().map(|change| change.path.to_string()).collect();
    names.sort();
    let mut expected: Vec<String> = (5..10).map(file).collect();
    expected.sort();
    assert_eq!(names, expected);
    for change in &told {
        let change = serde_json::to_value(change).unwrap();
        assert_eq!(touchmark_tests::authors(&change), ["user"], "{change}");
        assert_eq!(change["kind"], "modified", "{change}");
        assert_eq!(change["versions"], 1, "{change}");
        let number = (5..10)
            .find(|number| file(*number) == text(&change, "path"))
            .unwrap();
        assert_eq!(change["hash"], hashes[number], "{change}");
        let lines = match number {
            5 | 6 => json!({"added": 1, "removed": 0}),
            7 => json!({"added": 1, "removed": 1}),
            _ => json!({"added": 1, "removed": 2}),
        };
        assert_eq!(change["lines"], lines, "{change}");
    }
    assert!(session.changed().unwrap().is_empty());
    // A stale copy is refused, the agent's own is not.
    let error = session.edit(file(8).as_str()).unwrap_err();
    assert_eq!(error.code(), "stale");
    drop(session.edit(file(0).as_str()).unwrap());

    // The feed so far: each file once, by the right author.
    helper.ok("session/open", json!({"session": "first-half"}));
    let lines = until(&feed, |line| line["session"] == "first-half");
    let mut found = versions(&lines);
    // Where vim is stopped for long enough in the middle of its save, as on a
    // busy machine, its backup is told of.
    found.retain(|path, _| !path.ends_with('~'));
    assert_eq!(found.len(), 10, "{found:#?}");
    for number in 0..10 {
        let who = if number < 5 { "agent:agent" } else { "user" };
        let expected = vec![(
            who.to_owned(),
            "modified".to_owned(),
            hashes[number].clone(),
        )];
        assert_eq!(found[&file(number)], expected, "{}", file(number));
    }
    assert_eq!(stale(&lines, "agent"), (5..10).map(file).collect());
    let reads = lines
        .iter()
        .filter(|line| line["type"] == "read" && line["session"] == "agent")
        .count();
    assert_eq!(reads, 20);

    // Another branch. What the agent and the user have changed is kept by
    // git, since the branch leaves those files alone.
    git(world.workspace(), &["checkout", "-q", "other"]);
    let told = session.changed().unwrap();
    let mut names: Vec<String> = told.iter().map(|change| change.path.to_string()).collect();
    names.sort();
    let mut expected: Vec<String> = (10..16).map(file).collect();
    expected.sort();
    assert_eq!(names, expected, "{told:#?}");
    for change in &told {
        let change = serde_json::to_value(change).unwrap();
        assert_eq!(touchmark_tests::authors(&change), ["user"], "{change}");
        let gone = text(&change, "path") == file(15);
        assert_eq!(
            change["kind"],
            if gone { "deleted" } else { "modified" },
            "{change}"
        );
    }
    helper.ok("session/open", json!({"session": "second-half"}));
    let lines = until(&feed, |line| line["session"] == "second-half");
    let found = versions(&lines);
    let mut changed: Vec<&String> = found.keys().collect();
    changed.sort();
    assert_eq!(changed, expected.iter().collect::<Vec<_>>(), "{found:#?}");
    assert!(
        found
            .values()
            .all(|rows| rows.len() == 1 && rows[0].0 == "user"),
        "{found:#?}"
    );
    assert_eq!(stale(&lines, "agent"), (10..16).map(file).collect());
    // And back: what the agent had seen is there again.
    git(world.workspace(), &["checkout", "-q", "main"]);
    assert!(session.changed().unwrap().is_empty());
    for state in session.status_all().unwrap() {
        let state = serde_json::to_value(state).unwrap();
        let number = (0..20)
            .find(|number| file(*number) == text(&state, "path"))
            .unwrap();
        let expected = if (5..10).contains(&number) {
            "stale"
        } else {
            "fresh"
        };
        assert_eq!(state["state"], expected, "{state}");
    }

    let pid = rustix::process::Pid::from_raw(watch.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    watch.wait().unwrap();
    reader.join().unwrap();
    world.healthy();
}
