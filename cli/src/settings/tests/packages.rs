//! Checks that the packages in `packaging/agents` have what `touchmark setup`
//! writes into settings. With `TOUCHMARK_BLESS` they are rewritten.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::parsed;
use crate::daemon::agent::EntryFormat;
use crate::settings::made::Made;
use crate::settings::server::Server;

const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/agents");
const OPENCODE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../bindings/typescript/opencode/package.json"
);

/// The only file that is written by hand, apart from the page about the
/// packages.
const SKILL: &str = "agent-plugin/skills/touchmark/SKILL.md";

const ABOUT: &str = "Which of an agent's file copies are out of date, and who changed what";

fn pretty(value: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(value).unwrap())
}

fn hooks(agent: &str) -> String {
    super::of(agent, "touchmark-hook")
        .put("", &mut Made::default())
        .unwrap()
}

fn server(entry: EntryFormat) -> String {
    let server = Server::of(entry, PathBuf::new(), "touchmark");
    server.put("", &mut Made::default()).unwrap()
}

/// Returns every generated file.
fn packages(skill: &str) -> BTreeMap<&'static str, String> {
    let version = env!("CARGO_PKG_VERSION");
    let license = env!("CARGO_PKG_LICENSE");
    let with = |mut value: Value, more: Value| {
        let more = more.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(more);
        pretty(&value)
    };
    let schema = |of: &str| format!("https://agent-plugins.org/schemas/1.0.0/{of}.schema.json");
    let manifest = json!({
        "name": "touchmark",
        "version": version,
        "description": ABOUT,
        "author": { "name": "touchmark" },
        "license": license,
        "keywords": ["files", "edits", "staleness", "attribution"],
    });
    let servers = parsed(&server(EntryFormat::Json(None)));
    let extension = json!({ "name": "touchmark", "version": version, "description": ABOUT, "contextFileName": "GEMINI.md" });
    let body = skill.splitn(3, "---\n").nth(2).unwrap().trim_start();
    BTreeMap::from([
        ("claude-code/.claude-plugin/plugin.json", pretty(&manifest)),
        ("claude-code/hooks/hooks.json", hooks("claude")),
        (
            "claude-code/.mcp.json",
            server(EntryFormat::Json(Some("stdio"))),
        ),
        ("claude-code/skills/touchmark/SKILL.md", skill.to_owned()),
        ("gemini-cli/gemini-extension.json", with(extension, servers)),
        ("gemini-cli/hooks/hooks.json", hooks("gemini")),
        ("gemini-cli/GEMINI.md", body.to_owned()),
        (
            "agent-plugin/plugin.json",
            with(json!({ "$schema": schema("plugin") }), manifest),
        ),
        (
            "agent-plugin/mcp.json",
            with(
                json!({ "$schema": schema("mcp") }),
                parsed(&server(EntryFormat::Json(Some("stdio")))),
            ),
        ),
    ])
}

fn all_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all_below(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn packages_hold_what_setup_writes() {
    let place = Path::new(PLACE);
    let skill = fs::read_to_string(place.join(SKILL)).unwrap();
    let packages = packages(&skill);
    if std::env::var_os("TOUCHMARK_BLESS").is_some() {
        for (name, text) in &packages {
            let path = place.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    for (name, text) in &packages {
        let found = fs::read_to_string(place.join(name)).unwrap_or_default();
        assert_eq!(
            &found, text,
            "{name} is stale: see packaging/agents/README.md"
        );
    }
    // There are no other files.
    let mut found = Vec::new();
    all_below(place, &mut found);
    let by_hand = ["README.md", SKILL];
    for path in found {
        let name = path.strip_prefix(place).unwrap().to_str().unwrap();
        assert!(
            packages.contains_key(name) || by_hand.contains(&name),
            "{name}"
        );
    }
}

#[test]
fn the_skill_is_one() {
    let skill = fs::read_to_string(Path::new(PLACE).join(SKILL)).unwrap();
    let head = skill.split("---\n").nth(1).unwrap();
    let field = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    // The name equals the directory's, and the format's limits are respected.
    assert_eq!(field("name:"), "touchmark");
    let description = field("description:");
    assert!((1..=1024).contains(&description.len()) && !description.contains(": "));
}

#[test]
fn the_npm_package_of_the_plug_in_has_this_version() {
    let package = parsed(&fs::read_to_string(OPENCODE).unwrap());
    assert_eq!(package["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(package["license"], env!("CARGO_PKG_LICENSE"));
}
