//! Tests that `docs/configuration.md` names every key that the parser accepts,
//! no other, and the actual defaults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use super::tests::parse;
use super::{Config, Whose, keys};

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");

/// Returns the rows of the table of keys: name and default, as documented.
fn documented() -> Vec<(&'static str, &'static str)> {
    let (_, keys) = DOCUMENT.split_once("## Keys").expect("the section");
    let (table, _) = keys.split_once("\n## ").expect("its end");
    let cell = |text: &'static str| text.trim().trim_matches('`');
    table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some((cell(cells.next()?), cell(cells.next()?)))
        })
        .collect()
}

#[test]
fn the_document_names_every_key_and_no_other() {
    let named: Vec<&str> = documented().iter().map(|(key, _)| *key).collect();
    let parsed: Vec<&str> = keys::all().map(|key| key.name).collect();
    assert_eq!(named, parsed);
}

/// The table's third column is what a repository may do with the key.
#[test]
fn the_document_says_what_a_repository_may() {
    for key in keys::all() {
        let row = DOCUMENT
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", key.name)))
            .expect("a row");
        let third = row.split(" | ").nth(2).expect("a column").trim();
        assert_eq!(third, key.repository().unwrap_or("nothing"), "{}", key.name);
    }
}

#[test]
fn the_documented_defaults_are_in_force() {
    for (key, default) in documented() {
        if key == "case" {
            assert_eq!(Config::default().case, None);
            continue;
        }
        let config = parse(&format!("{key} = {default}\n"))
            .unwrap_or_else(|error| panic!("{key} = {default}: {error}"));
        assert_eq!(config, Config::default(), "{key} = {default}");
    }
}

/// A configuration in which every key has another value than its default.
const OTHERS: &str = r#"
    case = "insensitive"
    durability = "power"
    watch = "off"
    off = ["/a"]
    idle_exit = 1
    marks = { edit_ttl = 1, flag_ttl = 1, hook_ttl = 1, command_ttl = 1, late = 1 }
    limits = { frame = 65536, connections = 1, read_text = 1 }
    contents = { total = 1, file = 1, exclude = [] }
    scope = { exclude = ["a"] }
    guard = { protect = [] }
    versions = { keep = "1 per path, 1 s" }
    sessions = { keep = 1 }
    recovery = { keep = "1 s, 1 KiB", ignored = 1 }
    dedup = { enabled = false }
    hooks = { replace_repeats = true, gate = "off", gates = { codex = "strict" }, unsaved = "off" }
    desktop = { losses = true }
    worktrees = { notice = false }
    calls = { keep = 1, age = 1, bytes = 1, never = [], rules = { a = ["b"] } }
    telemetry = { enabled = true, endpoint = "http://a:1", headers = { a = "b" }, paths = "none" }
"#;

/// What is shown, read again, is the same.
#[test]
fn every_value_is_shown_as_a_file_says_it() {
    for config in [Config::default(), parse(OTHERS).unwrap()] {
        let mut again = Config {
            // Their values are not shown.
            telemetry_headers: config.telemetry_headers.clone(),
            ..Config::default()
        };
        for one in config
            .settings()
            .filter(|one| one.key != "telemetry.headers")
        {
            let Some(value) = one.value else { continue };
            let mut said = value;
            for name in one.key.rsplit('.') {
                said = toml::Table::from_iter([(name.to_owned(), said)]).into();
            }
            let text = toml::to_string(&said).unwrap();
            let applied = again.apply(Path::new("c.toml"), text.as_bytes(), Whose::User);
            assert_eq!(applied.wrong, [], "{text}");
        }
        assert_eq!(again, config);
    }
}

#[test]
fn what_waits_for_a_restart_is_marked() {
    let mut running = Config::default();
    let changes = running.reload(&parse(OTHERS).unwrap());
    let marked = |key: &str| {
        let row = DOCUMENT
            .lines()
            .find(|line| line.starts_with(&format!("| `{key}` |")));
        row.expect("a row").ends_with(" *restart* |")
    };
    let (at_restart, taken): (Vec<&str>, Vec<&str>) = documented()
        .iter()
        .map(|(key, _)| *key)
        .partition(|key| marked(key));
    assert_eq!(changes.taken, taken);
    assert_eq!(changes.at_restart, at_restart);
    // What was taken is in effect; nothing else has changed even in part.
    let again = running.reload(&parse(OTHERS).unwrap());
    assert_eq!(again.taken, Vec::<&str>::new());
    assert_eq!(again.at_restart, at_restart);
    let back = running.reload(&Config::default());
    assert_eq!((back.taken, back.at_restart), (taken, Vec::new()));
    assert_eq!(running, Config::default());
}

#[test]
fn the_documented_examples_are_understood() {
    let (_, example) = DOCUMENT.split_once("```toml\n").expect("the example");
    let (users, rest) = example.split_once("```").expect("its end");
    assert_ne!(parse(users).unwrap(), Config::default());
    let (_, example) = rest.split_once("```toml\n").expect("the repository's");
    let (repositorys, _) = example.split_once("```").expect("its end");
    let mut config = Config::default();
    let wrong = config
        .apply(
            Path::new("c.toml"),
            repositorys.as_bytes(),
            Whose::Repository,
        )
        .wrong;
    assert_eq!(wrong, []);
    assert_ne!(config, Config::default());
}
