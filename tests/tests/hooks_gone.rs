//! HOOK-3: what an agent's tools had begun ends with the agent's process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use touchmark_tests::hooks::Voice;
use touchmark_tests::process::until;
use touchmark_tests::world::binary;
use touchmark_tests::{World, user};

const TEXT: &str = "one\ntwo\nthree\n";

/// Starts an agent that sends these events to hooks, each through a separate
/// shell, and then waits to be killed.
fn agent(world: &World, events: &[Value]) -> Child {
    let mut script = String::new();
    for (number, event) in events.iter().enumerate() {
        let file = world.outside().join(format!("event-{number}"));
        std::fs::write(&file, event.to_string()).unwrap();
        let hook = format!(
            "{} hook claude < {}; true",
            binary().display(),
            file.display()
        );
        script += &format!("sh -c '{hook}' > /dev/null\n");
    }
    script += "echo said\nread never\n";
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(world.outside());
    world.dress(&mut command);
    command.env("TOUCHMARK_HOOK_MS", "30000");
    let mut agent = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(agent.stdout.take().unwrap());
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "said\n");
    agent
}

fn open_edits(world: &World) -> Value {
    world.client().ok("status", json!({}))["openEdits"].clone()
}

#[test]
fn hook3_a_hooks_mark_ends_with_its_agents_process() {
    let world = World::new();
    world.file("a.txt", TEXT);
    let voice = Voice::new("claude", "s", world.workspace());
    let events = [
        voice.start("startup"),
        voice.prompt("p", "go on"),
        voice.before_read("r", "a.txt"),
        voice.after_read("r", "a.txt", TEXT),
        voice.before_write("w", "a.txt", "the agent's\n"),
    ];
    let mut agent = agent(&world, &events);
    assert_eq!(open_edits(&world), 1);
    agent.kill().unwrap();
    agent.wait().unwrap();
    until("the mark has ended", || open_edits(&world) == 0);
    // The same bytes are the user's now.
    user::write(&world.path("a.txt"), "the agent's\n");
    let history = world.client().ok("file/history", json!({"path": "a.txt"}));
    assert_eq!(
        history["versions"][0]["author"]["kind"], "user",
        "{history}"
    );
}

#[test]
fn hook3_a_mark_outlives_the_shells_that_its_hooks_ran_in() {
    let world = World::new();
    world.file("a.txt", TEXT);
    let voice = Voice::new("claude", "s", world.workspace());
    let events = [
        voice.start("startup"),
        voice.before_read("r", "a.txt"),
        voice.after_read("r", "a.txt", TEXT),
        voice.before_write("w", "a.txt", "the agent's\n"),
    ];
    let mut agent = agent(&world, &events);
    std::fs::write(world.path("a.txt"), "the agent's\n").unwrap();
    let history = world.client().ok("file/history", json!({"path": "a.txt"}));
    assert_eq!(
        history["versions"][0]["author"]["session"], "s",
        "{history}"
    );
    agent.kill().unwrap();
    agent.wait().unwrap();
}
