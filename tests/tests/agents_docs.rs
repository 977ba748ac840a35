//! Every snippet in `docs/agents` is run, or parsed as its language.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use touchmark_tests::World;
use touchmark_tests::hooks::{printed, run};
use touchmark_tests::snippets::{AGENTS, Snippet, of, run_shell};
use touchmark_tests::world::binary;

/// The pages about agents with hooks, each with the file of the settings; other
/// pages have their own tests.
const PAGES: [(&str, &str, &str); 4] = [
    ("claude-code.md", "claude", ".claude/settings.json"),
    ("codex.md", "codex", ".codex/hooks.json"),
    ("gemini.md", "gemini", ".gemini/settings.json"),
    ("cursor.md", "cursor", ".cursor/hooks.json"),
];

/// Replaces this build's program by its name, as a person writes it. `touchmark`
/// is not on the `PATH` here, so settings have the whole path.
fn by_name(value: &mut Value) {
    match value {
        Value::String(text) => {
            let own = binary().canonicalize().unwrap();
            *text = text.replace(own.to_str().unwrap(), "touchmark");
        }
        Value::Array(items) => items.iter_mut().for_each(by_name),
        Value::Object(members) => members.values_mut().for_each(by_name),
        _ => {}
    }
}

/// The settings that a command writes into a file of the home directory.
fn written(world: &World, words: &[&str], file: &str) -> Value {
    let output = world.run(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    let text = std::fs::read_to_string(world.outside().join(file)).unwrap();
    let mut settings = serde_json::from_str(&text).unwrap();
    by_name(&mut settings);
    settings
}

/// A page shows exactly what `touchmark hook install` writes.
fn settings(world: &World, place: &str, (agent, file): (&str, &str), snippet: &Snippet) {
    let shown: Value =
        serde_json::from_str(&snippet.text).unwrap_or_else(|error| panic!("{place}: {error}"));
    let installed = written(world, &["hook", "install", agent, "--yes"], file);
    assert_eq!(shown, installed, "{place}: what is installed");
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
    for (name, agent, file) in PAGES {
        let page: PathBuf = Path::new(AGENTS).join(name);
        let snippets = of(&page);
        assert!(snippets.len() >= 3, "{name}: {snippets:?}");
        for snippet in snippets {
            let place = format!("{name}:{}", snippet.line);
            // Where no directory above is a workspace.
            let world = World::asleep_in(&std::env::temp_dir());
            match snippet.language.as_str() {
                "json" => settings(&world, &place, (agent, file), &snippet),
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
