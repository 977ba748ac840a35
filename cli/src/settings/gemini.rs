//! Gemini CLI's settings.

use std::path::PathBuf;

use super::hooks::Hooks;
use super::json::Json;
use super::{Around, Scope, shell_word};

/// What Gemini CLI leaves to its user.
pub(super) const NOTE: &str =
    "Gemini CLI asks whether you trust the hooks of a project, and again whenever they change";

/// Milliseconds for an event; the hook itself gives up long before.
const TIMEOUT: u64 = 5_000;

const TOOLS: &str = "read_file|write_file|replace|run_shell_command";

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.home.join(".gemini"),
        Scope::Project => around.workspace.join(".gemini"),
    }
    .join("settings.json")
}

// AfterModel is left out: it comes with every piece of an answer, and each
// would start a process. So would an automatic PreCompress, which comes with
// every request and says nothing.
pub(super) fn hooks(program: &str) -> Hooks {
    let command = format!("{} hook gemini", shell_word(program));
    let event = |event, matcher: Option<&str>| {
        let handler = Json::Object(vec![
            ("type", "command".into()),
            ("name", "touchmark".into()),
            ("command", command.as_str().into()),
            ("timeout", Json::Number(TIMEOUT)),
        ]);
        let mut group: Vec<_> = matcher
            .into_iter()
            .map(|tools| ("matcher", tools.into()))
            .collect();
        if matcher.is_some() {
            group.push(("sequential", Json::Flag(false)));
        }
        group.push(("hooks", Json::List(vec![handler])));
        (event, Json::Object(group))
    };
    Hooks {
        agent: "gemini",
        beside: Vec::new(),
        events: vec![
            event("SessionStart", None),
            event("BeforeAgent", None),
            event("BeforeTool", Some(TOOLS)),
            event("AfterTool", Some(TOOLS)),
            event("PreCompress", Some("manual")),
            event("AfterAgent", None),
            event("SessionEnd", None),
        ],
    }
}
