//! Cursor's hooks, in a file that holds nothing else. One event that Cursor
//! does not know, and it takes none of them.

use std::path::PathBuf;

use super::hooks::Hooks;
use super::json::Json;
use super::{Around, Scope, shell_word};

/// Seconds for an event; the hook itself gives up long before.
const TIMEOUT: u64 = 5;

const TOOLS: &str = "Read|Write|StrReplace|Delete|ApplyPatch|Shell";

pub(super) fn path(scope: Scope, around: &Around<'_>) -> PathBuf {
    match scope {
        Scope::User => around.home.join(".cursor"),
        Scope::Project => around.workspace.join(".cursor"),
    }
    .join("hooks.json")
}

pub(super) fn hooks(program: &str) -> Hooks {
    let command = format!("{} hook cursor", shell_word(program));
    let event = |event, matcher: Option<&str>| {
        let mut hook = vec![("command", command.as_str().into())];
        hook.extend(matcher.map(|tools| ("matcher", tools.into())));
        hook.push(("timeout", Json::Number(TIMEOUT)));
        (event, Json::Object(hook))
    };
    Hooks {
        agent: "cursor",
        beside: vec![("version", Json::Number(1))],
        events: vec![
            event("sessionStart", None),
            event("beforeSubmitPrompt", None),
            event("beforeReadFile", None),
            event("preToolUse", Some(TOOLS)),
            event("postToolUse", None),
            event("postToolUseFailure", None),
            event("preCompact", None),
            event("stop", None),
            event("sessionEnd", None),
        ],
    }
}
