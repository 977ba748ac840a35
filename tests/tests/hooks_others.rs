//! HOOK-10: who else is at work, and what a turn's commands have changed.

use std::fs;

use serde_json::Value;
use touchmark_tests::World;
use touchmark_tests::hooks::{self, Heard, Talk};

#[test]
fn hook10_the_first_prompt_names_who_else_is_at_work() {
    let world = World::new();
    for name in ["a.txt", "b.txt", "c.txt"] {
        world.file(name, "one\ntwo\n");
    }
    let mut first = Talk::new(&world, "codex", "first");
    first.start().nothing();
    // No session has changed a file.
    assert_eq!(first.prompt("p", "go"), Heard::Nothing);
    first.edit("a.txt", "two", "2");
    let mut child = Talk::new(&world, "claude", "parent");
    child.start().nothing();
    let told = child.prompt("p", "go").told();
    assert!(told.contains("Also at work here: agent session"), "{told}");
    assert!(told.contains("codex-1") && told.contains("a.txt"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    child.edit("b.txt", "two", "2");
    child.voice = child.voice.sub_agent("sub");
    child.edit("c.txt", "two", "2");

    let second = Talk::new(&world, "gemini", "second");
    second.start().nothing();
    let told = second.prompt("p", "go").told();
    for part in ["codex-1", "a.txt", "claude-1", "b.txt", "c.txt"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("claude-2"), "{told}");
    second.prompt("p2", "go on").nothing();
}

/// Returns what an agent's user is shown at the end of a turn.
fn shown(world: &World, talk: &Talk<'_>) -> Option<String> {
    let event = talk.voice.stop().to_string();
    let output = hooks::run(world, talk.voice.agent, event.as_bytes(), true);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    printed["systemMessage"].as_str().map(str::to_owned)
}

#[test]
fn hook10_the_user_is_shown_what_a_turns_commands_changed() {
    for agent in ["claude", "codex", "gemini", "qwen", "droid"] {
        let world = World::new();
        world.file("a.txt", "one\n");
        let mut talk = Talk::new(&world, agent, "s");
        talk.start().nothing();
        talk.prompt("p1", "go");
        talk.read("a.txt").nothing();
        talk.edit("a.txt", "one", "two");
        assert_eq!(shown(&world, &talk), None, "{agent}");
        talk.prompt("p2", "go");
        talk.shell("ls");
        assert_eq!(shown(&world, &talk), None, "{agent}");
        talk.prompt("p3", "go");
        talk.shell("echo three > a.txt");
        talk.shell("for n in 1 2 3; do echo new > new-$n.txt; done");
        let text = shown(&world, &talk).unwrap_or_else(|| panic!("{agent}: nothing"));
        assert!(text.contains("changed 4 files"), "{agent}: {text}");
        assert!(text.contains("new-3.txt"), "{agent}: {text}");
        assert_eq!(text.lines().count(), 1, "{agent}: {text}");
        let log = world.run(&["log", "--files"]);
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        assert!(log.contains("new-3.txt"), "{agent}: {log}");
        talk.prompt("p4", "go");
        assert_eq!(shown(&world, &talk), None, "{agent}");
        assert!(
            fs::read_to_string(world.path("a.txt"))
                .unwrap()
                .contains("three")
        );
    }
}
