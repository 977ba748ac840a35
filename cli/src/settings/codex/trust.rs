//! Checks whether Codex runs the hooks in its settings. Codex skips hooks that
//! its user has not approved, without a message.

use std::path::Path;

use serde_json::Value;
use toml::Table;

use crate::daemon::doctor::Finding;
use crate::settings::file::read;
use crate::settings::hooks::Hooks;
use crate::text::directory;

const CHECK: &str = "Codex's trust";

const HINT: &str = "enter /hooks in Codex and approve them; for an unattended run, \
                    `codex exec --dangerously-bypass-hook-trust`";

/// Returns a finding about touchmark's hooks in this file; `None` if it has
/// none. The approvals are in Codex's configuration.
pub(super) fn examine(hooks: &Hooks, file: &Path, configuration: &Path) -> Option<Finding> {
    let text = read(file).ok()?;
    let places = places(hooks, &serde_json::from_slice(&text).ok()?);
    if places.is_empty() {
        return None;
    }
    let shown = directory(file);
    let said = read(configuration).unwrap_or_default();
    let said: Table = toml::from_slice(&said).unwrap_or_default();
    let section = said.get("hooks").and_then(|hooks| hooks.get("state"));
    let name = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let approved = |place: &&String| {
        [file, &name].iter().any(|file| {
            let key = format!("{}:{place}", file.display());
            let state = section.and_then(|section| section.get(&key));
            state.is_some_and(|state| state.get("trusted_hash").is_some())
        })
    };
    let off = said
        .get("features")
        .and_then(|features| features.get("hooks"));
    if off.and_then(toml::Value::as_bool) == Some(false) {
        return Some(Finding::note(
            CHECK,
            format!("Codex runs no hooks: {} says so", directory(configuration)),
            "remove `hooks = false` from its [features]",
        ));
    }
    Some(match places.iter().filter(approved).count() {
        all if all == places.len() => {
            Finding::good(CHECK, format!("the hooks in {shown} are approved"))
        }
        0 => Finding::note(
            CHECK,
            format!("Codex skips the hooks in {shown} without a message: they were not approved"),
            HINT,
        ),
        some => Finding::note(
            CHECK,
            format!(
                "Codex skips {} of the {} hooks in {shown} without a message: they were not approved",
                places.len() - some,
                places.len()
            ),
            HINT,
        ),
    })
}

/// Returns Codex's names of touchmark's hooks in a file: the event, the index
/// of the group, and the index of the handler in it.
fn places(hooks: &Hooks, settings: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let events = settings["hooks"].as_object().into_iter().flatten();
    let groups = events.flat_map(|(event, groups)| {
        let groups = list(groups).into_iter().enumerate();
        groups.map(move |(number, group)| (snake(event), number, group))
    });
    let handlers = groups.flat_map(|(event, group, value)| {
        let handlers = list(&value["hooks"]).into_iter().enumerate();
        handlers.map(move |(number, handler)| (format!("{event}:{group}:{number}"), handler))
    });
    let ours = handlers.filter(|(_, handler)| hooks.runs(handler));
    ours.map(|(place, _)| place).collect()
}

/// Converts `PreToolUse` to `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut name = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
