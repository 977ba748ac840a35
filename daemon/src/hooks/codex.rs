//! Codex's events: Claude's, with a shell and patches for tools.

use serde_json::Value;

use super::fields::text;
use super::{Happened, Tool, Verdict, What, Writing, claude, patch, shell_patch};

pub(super) fn read(input: &Value) -> Option<Happened> {
    let mut happened = claude::read_as(input, "codex", "openai")?;
    happened.can_tell = matches!(
        happened.event.as_str(),
        "SessionStart" | "UserPromptSubmit" | "PostToolUse" | "SubagentStart"
    );
    let arguments = input.get("tool_input").unwrap_or(&Value::Null);
    let patched = match text(input, &["tool_name"]) {
        Some(name @ ("apply_patch" | "Edit" | "Write")) => {
            text(arguments, &["command", "input", "patch"])
                .or_else(|| arguments.as_str())
                .map(|text| Tool::Write {
                    name: name.to_owned(),
                    files: writings(text),
                })
        }
        Some("Bash") => text(arguments, &["command"])
            .and_then(shell_patch::writings)
            .map(|files| Tool::Write {
                name: "apply_patch".to_owned(),
                files,
            }),
        _ => None,
    };
    match &mut happened.what {
        What::Before { tool, .. } | What::Failed { tool, .. } => {
            if let Some(patched) = patched {
                *tool = patched;
            }
        }
        What::After {
            tool,
            output,
            batch_end,
            ..
        } => {
            if let Some(patched) = patched {
                *tool = patched;
            }
            // There is no event of a batch's end.
            *batch_end = true;
            output.replaceable = false;
        }
        _ => {}
    }
    Some(happened)
}

/// What a patch does, file by file.
pub(super) fn writings(text: &str) -> Vec<Writing> {
    patch::parse(text).unwrap_or_default()
}

pub(super) fn print(event: &str, verdict: Verdict) -> Value {
    claude::print(event, verdict)
}
