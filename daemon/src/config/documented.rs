//! `docs/configuration.md` names every key that the parser takes, no other,
//! and the defaults that are in force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::Path;

use super::Config;

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");

/// A row of the table of keys: name and default, as documented.
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

fn load(text: &str) -> Result<Config, String> {
    let mut config = Config::default();
    config
        .apply(Path::new("c.toml"), text.as_bytes())
        .map_err(|error| error.to_string())?;
    Ok(config)
}

/// The names that the parser says it takes where it meets one it does not.
fn taken(table: Option<&str>) -> Vec<String> {
    let text = match table {
        Some(table) => format!("[{table}]\nno_such_key = 1\n"),
        None => "no_such_key = 1\n".into(),
    };
    let error = load(&text).expect_err("an unknown key");
    let (_, names) = error.split_once("expected ").expect("the names it knows");
    let names: Vec<String> = names
        .split('`')
        .skip(1)
        .step_by(2)
        .map(String::from)
        .collect();
    assert!(!names.is_empty(), "{error}");
    names
}

#[test]
fn the_document_names_every_key_and_no_other() {
    let mut parsed = BTreeSet::new();
    for name in taken(None) {
        // Only a table takes an empty one.
        if load(&format!("[{name}]\n")).is_ok() {
            parsed.extend(taken(Some(&name)).iter().map(|key| format!("{name}.{key}")));
        } else {
            parsed.insert(name);
        }
    }
    let rows = documented();
    let named: BTreeSet<String> = rows.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(rows.len(), named.len(), "a key is documented twice");
    assert_eq!(named, parsed);
}

#[test]
fn the_documented_defaults_are_in_force() {
    for (key, default) in documented() {
        if key == "case" {
            assert_eq!(Config::default().case, None);
            continue;
        }
        let config = load(&format!("{key} = {default}\n"))
            .unwrap_or_else(|error| panic!("{key} = {default}: {error}"));
        assert_eq!(config, Config::default(), "{key} = {default}");
    }
}

/// A configuration in which every key has another value than the default.
const OTHERS: &str = r#"
    case = "insensitive"
    durability = "power"
    watch = "off"
    idle_exit = 1
    marks = { edit_ttl = 1, flag_ttl = 1, hook_ttl = 1, command_ttl = 1, late = 1 }
    limits = { frame = 65536, connections = 1, read_text = 1 }
    contents = { total = 1, file = 1, exclude = [] }
    versions = { keep = "1 per path, 1 s" }
    sessions = { keep = 1 }
    recovery = { keep = "1 s, 1 KiB" }
    dedup = { enabled = false }
    hooks = { replace_repeats = true }
    calls = { keep = 1, age = 1, bytes = 1, never = [], rules = { a = ["b"] } }
"#;

#[test]
fn what_waits_for_a_restart_is_marked() {
    let mut running = Config::default();
    let changes = running.reload(load(OTHERS).unwrap());
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
    // What was taken is in force, what was not has not become so by half.
    let again = running.reload(load(OTHERS).unwrap());
    assert_eq!(again.taken, Vec::<&str>::new());
    assert_eq!(again.at_restart, at_restart);
    let back = running.reload(Config::default());
    assert_eq!((back.taken, back.at_restart), (taken, Vec::new()));
    assert_eq!(running, Config::default());
}

#[test]
fn the_documented_example_is_understood() {
    let (_, example) = DOCUMENT.split_once("```toml\n").expect("the example");
    let (example, _) = example.split_once("```").expect("its end");
    assert_ne!(load(example).unwrap(), Config::default());
}
