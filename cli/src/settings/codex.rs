//! Codex's hooks, in a file that holds nothing else.

mod trust;

use std::path::PathBuf;

use super::hooks::Hooks;
use super::json::Json;
use super::{Around, Scope, shell_word};
use crate::commands::daemon::doctor::Finding;

/// What Codex leaves to its user.
pub(super) const NOTE: &str = "Codex passes over hooks in silence before you have approved them: say /hooks in Codex, and again whenever they change; for a run without anybody, `codex exec --dangerously-bypass-hook-trust`";

/// Seconds for an event; the hook itself gives up long before.
const TIMEOUT: u64 = 5;

/// Of what ends something: Codex grants no more, and warns at each start where
/// more is asked.
const END_TIMEOUT: u64 = 3;

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.of_user("CODEX_HOME", ".codex"),
        Scope::Project => around.workspace.join(".codex"),
    }
    .join("hooks.json")
}

/// Whether Codex runs the hooks that were put there; nothing where none were.
pub(super) fn examine(around: &Around<'_>) -> Vec<Finding> {
    let configuration = around.of_user("CODEX_HOME", ".codex").join("config.toml");
    let hooks = hooks("touchmark");
    [Scope::User, Scope::Project]
        .into_iter()
        .filter_map(|scope| trust::examine(&hooks, &path(scope, around), &configuration))
        .collect()
}

pub(super) fn hooks(program: &str) -> Hooks {
    let command = format!("{} hook codex", shell_word(program));
    let event = |event, matcher: Option<&str>| {
        let timeout = match event {
            "Interrupt" | "SessionEnd" => END_TIMEOUT,
            _ => TIMEOUT,
        };
        let handler = Json::Object(vec![
            ("type", "command".into()),
            ("command", command.as_str().into()),
            ("timeout", Json::Number(timeout)),
        ]);
        let mut group: Vec<_> = matcher
            .into_iter()
            .map(|tools| ("matcher", tools.into()))
            .collect();
        group.push(("hooks", Json::List(vec![handler])));
        (event, Json::Object(group))
    };
    Hooks {
        agent: "codex",
        beside: Vec::new(),
        events: vec![
            event("SessionStart", None),
            event("UserPromptSubmit", None),
            event("PreToolUse", Some("Bash|apply_patch")),
            event("PostToolUse", Some("Bash|apply_patch")),
            event("SubagentStart", None),
            event("SubagentStop", None),
            event("PostCompact", None),
            event("Interrupt", None),
            event("Stop", None),
            event("SessionEnd", None),
        ],
    }
}
