//! Every snippet in `docs/agents` is run, or parsed as its language.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::hooks::{printed, run};
use touchmark_tests::snippets::{AGENTS, Snippet, of, run_shell};

/// The pages about agents with hooks; others' have tests of their own.
const PAGES: [(&str, &str); 4] = [
    ("claude-code.md", "claude"),
    ("codex.md", "codex"),
    ("gemini.md", "gemini"),
    ("cursor.md", "cursor"),
];

/// All commands that settings name, with their arguments.
fn commands(value: &Value, found: &mut Vec<Vec<String>>) {
    match value {
        Value::Object(members) => {
            if let Some(command) = members.get("command").and_then(Value::as_str) {
                let mut words: Vec<String> = command.split(' ').map(String::from).collect();
                let arguments = members.get("args").and_then(Value::as_array);
                words.extend(
                    arguments
                        .into_iter()
                        .flatten()
                        .map(|word| word.as_str().unwrap().to_owned()),
                );
                found.push(words);
            }
            members.values().for_each(|value| commands(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| commands(value, found)),
        _ => {}
    }
}

fn settings(world: &World, place: &str, agent: &str, snippet: &Snippet) {
    let settings: Value =
        serde_json::from_str(&snippet.text).unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut named = Vec::new();
    commands(&settings, &mut named);
    assert!(named.len() > 5, "{place}: not the settings");
    for words in named {
        assert_eq!(words, ["touchmark", "hook", agent], "{place}");
    }
    assert_eq!(printed(&run(world, agent, b"{}", false)), json!({}));
}

/// The page of the agents without a separate page shows each of them, and names
/// its files.
#[test]
fn the_page_of_more_agents_shows_what_is_installed() {
    let page = Path::new(AGENTS).join("more.md");
    let written = std::fs::read_to_string(&page).unwrap();
    let snippets = of(&page);
    let [snippet] = &snippets[..] else {
        panic!("{snippets:?}")
    };
    let world = World::asleep_in(&std::env::temp_dir());
    run_shell(&world, "more.md", snippet);
    let names = snippet
        .text
        .lines()
        .map(|line| line.split(' ').nth(3).unwrap());
    for name in names {
        let row = format!("(`{name}`)");
        let row = written.lines().find(|line| line.contains(&row)).unwrap();
        for scope in ["--user", "--project"] {
            let shown = world.run(&["hook", "install", name, scope, "--dry-run", "--json"]);
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
            let file = Path::new(shown["file"].as_str().unwrap());
            let home = world.outside();
            let file = match file.strip_prefix(&home) {
                Ok(below) if scope == "--user" => format!("`~/{}`", below.display()),
                _ => format!(
                    "`{}`",
                    file.strip_prefix(world.workspace()).unwrap().display()
                ),
            };
            assert!(row.contains(&file), "{name}: {file}: {row}");
        }
    }
}

#[test]
fn every_snippet_of_the_pages_about_hooks_runs() {
    for (name, agent) in PAGES {
        let page: PathBuf = Path::new(AGENTS).join(name);
        let snippets = of(&page);
        assert!(snippets.len() >= 3, "{name}: {snippets:?}");
        for snippet in snippets {
            let place = format!("{name}:{}", snippet.line);
            // Where no directory above is a workspace.
            let world = World::asleep_in(&std::env::temp_dir());
            match snippet.language.as_str() {
                "json" => settings(&world, &place, agent, &snippet),
                "sh" => {
                    run_shell(&world, name, &snippet);
                    // The daemon that the snippet started, if it left one.
                    world.run(&["stop"]);
                }
                other => panic!("{place}: nobody runs {other:?}"),
            }
        }
    }
}
