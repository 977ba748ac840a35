//! "Tool Enhancements": background tasks that are known after a restart.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::{Session, World, text};

/// A process that runs until it is killed.
struct Process(Child);

impl Process {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn task(id: &str, pid: Option<u32>) -> Value {
    json!({"id": id, "type": "shell", "command": "npm run dev", "pid": pid,
        "startTime": 1_700_000_000_000_u64, "workingDirectory": "/srv/app"})
}

fn save(agent: &mut Session, id: &str, pid: Option<u32>) {
    agent.ok("task/save", json!({"task": task(id, pid)}));
}

/// Returns all tasks as `session id alive`.
fn all(world: &World) -> Vec<String> {
    let listed = world.client().ok("task/list", json!({}));
    let rows = listed["tasks"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            format!(
                "{} {} {}",
                text(row, "session"),
                text(row, "id"),
                row["alive"]
            )
        })
        .collect()
}

#[test]
fn a_task_is_saved_loaded_and_removed() {
    let world = World::new();
    let mut agent = world.session("s");
    let process = Process::start();
    save(&mut agent, "dev", Some(process.pid()));
    let listed = agent.ok("task/list", json!({}));
    let mut expected = task("dev", Some(process.pid()));
    expected["session"] = json!("s");
    expected["alive"] = json!(true);
    expected["label"] = json!("agent-1");
    assert_eq!(listed, json!({"tasks": [expected]}));
    // The same id again stands in its place.
    let agents = json!({"id": "dev", "type": "agent", "startTime": 5, "workingDirectory": "."});
    agent.ok("task/save", json!({"task": agents}));
    let listed = agent.ok("task/list", json!({}));
    assert_eq!(
        listed,
        json!({"tasks": [{"session": "s", "id": "dev", "type": "agent", "startTime": 5,
            "workingDirectory": ".", "alive": null, "label": "agent-1"}]})
    );
    let removed = agent.ok("task/remove", json!({"id": "dev"}));
    assert_eq!(removed["removed"], 1, "{removed}");
    let removed = agent.ok("task/remove", json!({"id": "dev"}));
    assert_eq!(removed["removed"], 0, "{removed}");
    assert_eq!(all(&world), Vec::<String>::new());
}

#[test]
fn tasks_survive_a_killed_daemon() {
    let mut world = World::new();
    let mut agent = world.session("s");
    let mut ends = Process::start();
    let stays = Process::start();
    save(&mut agent, "ends", Some(ends.pid()));
    save(&mut agent, "stays", Some(stays.pid()));
    save(&mut agent, "without", None);
    assert_eq!(
        all(&world),
        ["s ends true", "s stays true", "s without null"]
    );
    world.kill();
    ends.end();
    world.start();
    assert_eq!(
        all(&world),
        ["s ends false", "s stays true", "s without null"]
    );
    let cleaned = world.client().ok("task/cleanup", json!({}));
    assert_eq!(cleaned["removed"], 1, "{cleaned}");
    world.restart();
    assert_eq!(all(&world), ["s stays true", "s without null"]);
    let cleaned = world.client().ok("task/cleanup", json!({}));
    assert_eq!(cleaned["removed"], 0, "{cleaned}");
}

#[test]
fn a_task_lives_while_its_process_does() {
    let world = World::new();
    let mut agent = world.session("s");
    let mut process = Process::start();
    save(&mut agent, "t", Some(process.pid()));
    assert_eq!(all(&world), ["s t true"]);
    // It has ended and its parent has not waited for it: a zombie.
    process.0.kill().unwrap();
    let stat = format!("/proc/{}/stat", process.pid());
    while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    assert_eq!(all(&world), ["s t false"]);
    process.end();
    assert_eq!(all(&world), ["s t false"]);
    // A process that was gone before it was saved never lives.
    save(&mut agent, "late", Some(process.pid()));
    assert_eq!(all(&world), ["s late false", "s t false"]);
    let cleaned = agent.client.ok("task/cleanup", json!({}));
    assert_eq!(cleaned["removed"], 2, "{cleaned}");
}

/// The variable that marks a run inside a new PID namespace.
const INSIDE: &str = "TOUCHMARK_TEST_OWN_PROCESSES";

#[test]
fn a_number_used_again_is_another_process() {
    if std::env::var_os(INSIDE).is_some() {
        return number_used_again();
    }
    // Among processes of its own, so that no other process's numbers move.
    let mut command = Command::new("unshare");
    command
        .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "seeds_tasks::a_number_used_again_is_another_process",
        ])
        .arg("--nocapture")
        .env(INSIDE, "1")
        .stdin(Stdio::null());
    let done = command.output().unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    if complained.contains("unshare failed") {
        println!("not tested: a process number used again: {complained}");
        return;
    }
    assert!(done.status.success(), "{said}\n{complained}");
}

fn number_used_again() {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    let world = World::new();
    let mut agent = world.session("s");
    let mut first = Process::start();
    let pid = first.pid();
    save(&mut agent, "t", Some(pid));
    assert_eq!(all(&world), ["s t true"]);
    first.end();
    assert_eq!(all(&world), ["s t false"]);
    // Starts are distinguished by the clock's tick, 10 ms.
    touchmark_tests::user::pause(50);
    // A thread that starts in between takes the number: try again.
    let second = (0..100).find_map(|_| {
        std::fs::write(NEXT, (pid - 1).to_string()).unwrap();
        Some(Process::start()).filter(|process| process.pid() == pid)
    });
    let second = second.expect("a process of the same number");
    assert_eq!(second.pid(), pid);
    assert_eq!(all(&world), ["s t false"]);
    let cleaned = agent.client.ok("task/cleanup", json!({}));
    assert_eq!(cleaned["removed"], 1, "{cleaned}");
    // Saved now, it is that one.
    save(&mut agent, "t", Some(pid));
    assert_eq!(all(&world), ["s t true"]);
}

#[test]
fn ids_are_unique_in_a_session() {
    let world = World::new();
    let (mut one, mut two) = (world.session("a"), world.session("b"));
    save(&mut one, "dev", None);
    save(&mut two, "dev", None);
    save(&mut two, "test", None);
    assert_eq!(all(&world), ["a dev null", "b dev null", "b test null"]);
    let listed = two.ok("task/list", json!({}));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(one.ok("task/remove", json!({"id": "dev"}))["removed"], 1);
    assert_eq!(all(&world), ["b dev null", "b test null"]);
    save(&mut one, "dev", None);
    // Without a session: every session's of that id.
    let removed = one.client.ok("task/remove", json!({"id": "dev"}));
    assert_eq!(removed["removed"], 2, "{removed}");
    assert_eq!(all(&world), ["b test null"]);
    // A closed session's tasks run on; a forgotten one's are forgotten.
    two.ok("session/close", json!({}));
    assert_eq!(all(&world), ["b test null"]);
    two.ok("session/close", json!({"forget": true}));
    assert_eq!(all(&world), Vec::<String>::new());
}

#[test]
fn tasks_are_listed_in_portions_and_bounded() {
    let world = World::new();
    let mut agent = world.session("s");
    for id in ["c", "a", "b"] {
        save(&mut agent, id, None);
    }
    let mut told = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let part = agent.ok("task/list", json!({"limit": 2, "cursor": cursor}));
        let rows = part["tasks"].as_array().unwrap();
        assert!(rows.len() <= 2, "{part}");
        told.extend(rows.iter().map(|row| text(row, "id")));
        cursor = part["more"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(told, ["a", "b", "c"]);
    for wrong in [
        json!({"id": "", "type": "shell", "startTime": 1, "workingDirectory": "/"}),
        json!({"id": "x", "type": "thread", "startTime": 1, "workingDirectory": "/"}),
        json!({"id": "x", "type": "shell", "startTime": 1, "workingDirectory": "x".repeat(70_000)}),
    ] {
        agent.refused("task/save", json!({"task": wrong}), "invalidParams");
    }
    for number in 0..997 {
        save(&mut agent, &format!("more{number}"), None);
    }
    agent.refused(
        "task/save",
        json!({"task": task("one more", None)}),
        "tooLarge",
    );
    save(&mut agent, "a", None);
}
