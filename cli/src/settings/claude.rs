//! Claude Code's settings.

use std::path::PathBuf;

use super::hooks::Hooks;
use super::json::Json;
use super::{Around, Scope};

/// Seconds for an event; the hook itself gives up long before.
const TIMEOUT: u64 = 5;

/// The end of a session has a second and a half for all hooks together.
const END_TIMEOUT: u64 = 1;

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.of_user("CLAUDE_CONFIG_DIR", ".claude"),
        Scope::Project => around.workspace.join(".claude"),
    }
    .join("settings.json")
}

pub(super) fn hooks(program: &str) -> Hooks {
    let event = |event, matcher: Option<&str>| {
        let timeout = match event {
            "SessionEnd" => END_TIMEOUT,
            _ => TIMEOUT,
        };
        // No shell takes the words apart.
        let handler = Json::Object(vec![
            ("type", "command".into()),
            ("command", program.into()),
            ("args", Json::List(vec!["hook".into(), "claude".into()])),
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
        agent: "claude",
        beside: Vec::new(),
        events: vec![
            event("SessionStart", None),
            event("UserPromptSubmit", None),
            event("PreToolUse", Some("Read|Edit|Write|NotebookEdit|Bash")),
            event(
                "PostToolUse",
                Some("Read|Edit|Write|NotebookEdit|Bash|Grep"),
            ),
            event("PostToolUseFailure", Some("Edit|Write|NotebookEdit|Bash")),
            event("PermissionDenied", Some("Edit|Write|NotebookEdit|Bash")),
            event("PostToolBatch", None),
            event("SubagentStart", None),
            event("SubagentStop", None),
            event("PostCompact", None),
            event("Stop", None),
            event("SessionEnd", None),
        ],
    }
}
