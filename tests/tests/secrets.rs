//! What is not stored (SEC-3): every byte of the state directory is searched.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use touchmark_tests::{Session, World, sha256};

/// Unique contents that must not be found.
struct Canaries(Vec<String>);

impl Canaries {
    fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns a unique text for a file, short enough to be stored
    /// uncompressed.
    fn next(&mut self) -> String {
        let canary = format!("CANARY{:03}VALUE", self.0.len());
        self.0.push(canary.clone());
        format!("{canary}\n")
    }

    /// Stops the daemon, and returns the canaries in its state.
    fn kept(&self, world: &mut World) -> Vec<&str> {
        assert_eq!(world.stop(), Some(0));
        let mut bytes = Vec::new();
        let mut directories = vec![world.state()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => directories.push(path),
                    false => bytes.extend(fs::read(&path).unwrap_or_default()),
                }
            }
        }
        let bytes = String::from_utf8_lossy(&bytes);
        let holds = |canary: &&String| bytes.contains(canary.as_str());
        self.0.iter().filter(holds).map(String::as_str).collect()
    }
}

fn read(agent: &mut Session, path: &str) {
    agent.ok("file/readText", json!({"path": path}));
}

#[test]
fn sec3_a_secret_stays_out_under_every_name() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let mut canaries = Canaries::new();
    let ordinary = canaries.next();
    world.file("ordinary.txt", ordinary);
    read(&mut agent, "ordinary.txt");

    world.file("a/.env", canaries.next());
    read(&mut agent, "a/.env");
    fs::hard_link(world.path("a/.env"), world.path("a/hard.txt")).unwrap();
    read(&mut agent, "a/hard.txt");

    world.file("b/.npmrc", canaries.next());
    read(&mut agent, "b/.npmrc");
    fs::rename(world.path("b/.npmrc"), world.path("b/npm.bak")).unwrap();
    read(&mut agent, "b/npm.bak");

    world.file("c/server.p12", canaries.next());
    read(&mut agent, "c/server.p12");
    fs::copy(world.path("c/server.p12"), world.path("c/copy.txt")).unwrap();
    read(&mut agent, "c/copy.txt");

    // Met under its name only after it was kept.
    let before = canaries.next();
    world.file("d/notes.txt", &before);
    read(&mut agent, "d/notes.txt");
    world.file("d/.aws/credentials", &before);
    read(&mut agent, "d/.aws/credentials");

    let later = canaries.next();
    world.file("e/.env", &later);
    read(&mut agent, "e/.env");
    symlink("e", world.path("f")).unwrap();
    read(&mut agent, "f/.env");
    drop(agent);
    assert_eq!(canaries.kept(&mut world), ["CANARY000VALUE"]);

    world.start();
    let mut agent = world.session("s");
    fs::remove_file(world.path("e/.env")).unwrap();
    world.file("e/later.txt", &later);
    // It is a text like any other but for being kept.
    let shown = agent.ok("file/readText", json!({"path": "e/later.txt"}));
    assert_eq!(shown["hash"], sha256(&later));
    drop(agent);
    assert_eq!(canaries.kept(&mut world), ["CANARY000VALUE"]);
}

#[test]
fn sec3_tokens_stay_out_of_contents_commands_and_calls() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let mut canaries = Canaries::new();
    let mut next = || canaries.next().trim().to_owned();
    let begin = |agent: &mut Session, label: String| {
        let begun = agent.ok("command/begin", json!({"label": label}));
        agent.ok("command/end", json!({"command": begun["command"]}));
    };
    // It goes on, and so is kept.
    let label = format!("make {}", next());
    agent.ok("command/begin", json!({"label": label}));

    world.file(
        "a.rs",
        format!("// {}\nlet x = \"ghp_{}\";\n", next(), "a1B2".repeat(9)),
    );
    read(&mut agent, "a.rs");
    begin(
        &mut agent,
        format!("export GITHUB_TOKEN={} && git push", next()),
    );
    begin(
        &mut agent,
        format!("curl -H 'Authorization: Bearer {}' x", next()),
    );
    let task = json!({"id": "t", "type": "shell", "startTime": 1, "workingDirectory": "/",
        "command": format!("mysql --password {}", next())});
    agent.ok("task/save", json!({"task": task}));
    for (args, result) in [
        (
            json!({"url": format!("https://me:{}@host/", next())}),
            "".to_owned(),
        ),
        (
            json!({"pattern": "x"}),
            format!("a.rs:1:x\nb/.env:1:{}", next()),
        ),
        (
            json!({"pattern": "y"}),
            format!("glpat-{} {}", "x".repeat(20), next()),
        ),
    ] {
        let call = json!({"tool": "grep", "args": args, "result": result});
        assert_eq!(agent.ok("call/record", call)["callId"], json!(null));
    }
    // What the task list shows is what is kept.
    let tasks = agent.ok("task/list", json!({}));
    assert_eq!(tasks["tasks"][0]["command"], "mysql --password ***");
    drop(agent);
    assert_eq!(canaries.kept(&mut world), ["CANARY000VALUE"]);
}

#[test]
fn sec3_what_is_forgotten_is_in_no_file() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let mut other = world.session("t");
    let mut canaries = Canaries::new();
    let mut next = || canaries.next().trim().to_owned();
    other.ok("command/begin", json!({"label": next()}));

    agent.ok("command/begin", json!({"label": next()}));
    let task = json!({"id": "t", "type": "shell", "startTime": 1, "workingDirectory": "/",
        "command": next()});
    agent.ok("task/save", json!({"task": task}));
    let call = json!({"tool": "x", "args": {"a": next()}, "result": next()});
    agent.ok("call/record", call);
    agent.ok("warning/store", json!({"files": ["a"], "note": next()}));
    agent.ok("checkpoint/create", json!({"label": next()}));
    drop((agent, other));
    assert_eq!(canaries.kept(&mut world).len(), 7, "they are stored");

    // So that they are in a snapshot, too.
    world.start();
    let mut client = world.client();
    client.ok("session/close", json!({"session": "s", "forget": true}));
    drop(client);
    assert_eq!(canaries.kept(&mut world), ["CANARY000VALUE"]);

    let content = canaries.next();
    world.start();
    world.file("a.txt", content);
    let mut agent = world.session("t");
    read(&mut agent, "a.txt");
    drop(agent);
    assert_eq!(canaries.kept(&mut world).len(), 2, "it is stored");
    world.start();
    assert!(world.run(&["forget", "--contents"]).status.success());
    assert_eq!(canaries.kept(&mut world), ["CANARY000VALUE"]);
    world.start();
    assert!(world.run(&["forget", "--all", "--yes"]).status.success());
    assert_eq!(world.wait_end(), Some(0));
    assert!(world.left_behind().is_empty(), "{:?}", world.left_behind());
}

/// A dump of the daemon's memory would contain contents of files.
#[test]
fn sec3_no_daemon_leaves_a_core_file() {
    let mut world = World::asleep();
    world.launch_through(&["sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"]);
    world.start();
    let limits = fs::read_to_string(format!("/proc/{}/limits", world.pid())).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let words: Vec<&str> = core.unwrap().split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{limits}");
}
