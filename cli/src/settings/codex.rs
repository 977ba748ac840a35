//! Codex's hooks, in a file that holds nothing else.

use std::path::PathBuf;

use super::hooks::Hooks;
use super::json::Json;
use super::{Around, Scope, shell_word};

/// What Codex leaves to its user.
pub(super) const NOTE: &str = "Codex runs no hook before you have approved it: say /hooks in Codex, and again whenever it changes";

/// Seconds for an event; the hook itself gives up long before.
const TIMEOUT: u64 = 5;

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.of_user("CODEX_HOME", ".codex"),
        Scope::Project => around.workspace.join(".codex"),
    }
    .join("hooks.json")
}

pub(super) fn hooks(program: &str) -> Hooks {
    let command = format!("{} hook codex", shell_word(program));
    let event = |event, matcher: Option<&str>| {
        let handler = Json::Object(vec![
            ("type", "command".into()),
            ("command", command.as_str().into()),
            ("timeout", Json::Number(TIMEOUT)),
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
