//! What each agent takes for an answer, from its documents and schemas: fields
//! that it does not name are refused, as the strictest of them do. Beyond
//! that, no answer may allow what the user would have been asked about.

use serde_json::Value;

/// What a field may hold.
enum Field {
    Bool,
    /// At most so many characters.
    Text(usize),
    /// One of these.
    One(&'static [&'static str]),
    Any,
    Object(Vec<(&'static str, Field)>),
}

use Field::{Any, Bool, Object, One, Text};

/// Agents cut off or drop longer texts.
const CONTEXT: Field = Text(10_000);

/// Checks an answer.
pub fn check(agent: &str, event: &str, printed: &Value) {
    let fields = match agent {
        "claude" => claude(event),
        "codex" => codex(event),
        "gemini" => gemini(event),
        "cursor" => cursor(event),
        "opencode" => opencode(event),
        other => panic!("no agent {other}"),
    };
    object(printed, &fields, &format!("{agent} {event}"));
    let text = printed.to_string();
    assert!(!text.contains("\"allow\""), "{agent} {event}: {text}");
    let specific = &printed["hookSpecificOutput"];
    if matches!(agent, "claude" | "codex") && !specific.is_null() {
        assert_eq!(specific["hookEventName"], event, "{text}");
        let decided = specific.get("permissionDecision").is_some();
        let reasoned = specific.get("permissionDecisionReason").is_some();
        assert_eq!(decided, reasoned, "{text}");
    }
    if printed.get("decision").is_some() {
        assert!(printed["reason"].is_string(), "{text}");
    }
    if agent == "opencode" {
        assert!(printed.as_object().unwrap().len() <= 1, "{text}");
    }
}

fn object(value: &Value, fields: &[(&str, Field)], place: &str) {
    let Some(members) = value.as_object() else {
        panic!("{place}: no object: {value}");
    };
    for (name, value) in members {
        let Some((_, field)) = fields.iter().find(|(known, _)| known == name) else {
            panic!("{place}: no field {name:?}: {value}");
        };
        let place = format!("{place}.{name}");
        match field {
            Bool => assert!(value.is_boolean(), "{place}: {value}"),
            Text(most) => {
                let text = value.as_str().unwrap_or_else(|| panic!("{place}: {value}"));
                assert!(text.chars().count() <= *most, "{place} is too long");
                assert!(!text.is_empty(), "{place} is empty");
                assert!(
                    text.chars().all(|c| c == '\n' || !c.is_control()),
                    "{place}: {text:?}"
                );
            }
            One(of) => assert!(
                value.as_str().is_some_and(|text| of.contains(&text)),
                "{place}: {value}"
            ),
            Any => {}
            Object(fields) => object(value, fields, &place),
        }
    }
}

/// Claude Code: unknown fields are ignored there, but say nothing either.
fn claude(event: &str) -> Vec<(&'static str, Field)> {
    let mut fields = common();
    let name = ("hookEventName", Text(40));
    let specific = match event {
        "PreToolUse" => Object(vec![
            name,
            ("permissionDecision", One(&["deny", "ask", "defer"])),
            ("permissionDecisionReason", CONTEXT),
            ("updatedInput", Any),
            ("additionalContext", CONTEXT),
        ]),
        "PostToolUse" => Object(vec![
            name,
            ("additionalContext", CONTEXT),
            ("updatedToolOutput", Any),
        ]),
        "SessionStart" | "UserPromptSubmit" | "PostToolUseFailure" | "PostToolBatch"
        | "SubagentStart" => Object(vec![name, ("additionalContext", CONTEXT)]),
        _ => return fields,
    };
    fields.push(("hookSpecificOutput", specific));
    fields
}

/// Codex: its schemas say `additionalProperties: false`, and its PreToolUse
/// takes neither `ask` nor what would stop the turn.
fn codex(event: &str) -> Vec<(&'static str, Field)> {
    let name = ("hookEventName", Text(40));
    let mut fields = match event {
        "PreToolUse" => vec![
            ("systemMessage", CONTEXT),
            (
                "hookSpecificOutput",
                Object(vec![
                    name,
                    ("permissionDecision", One(&["deny"])),
                    ("permissionDecisionReason", CONTEXT),
                    ("additionalContext", CONTEXT),
                ]),
            ),
        ],
        _ => common(),
    };
    if matches!(
        event,
        "PostToolUse" | "UserPromptSubmit" | "SessionStart" | "SubagentStart"
    ) {
        let specific = vec![("hookEventName", Text(40)), ("additionalContext", CONTEXT)];
        fields.push(("hookSpecificOutput", Object(specific)));
    }
    if matches!(event, "PreCompact" | "PostCompact" | "SubagentStart") {
        fields.retain(|(name, _)| !matches!(*name, "decision" | "reason"));
    }
    fields
}

fn common() -> Vec<(&'static str, Field)> {
    vec![
        ("continue", Bool),
        ("stopReason", CONTEXT),
        ("suppressOutput", Bool),
        ("systemMessage", CONTEXT),
        ("decision", One(&["block"])),
        ("reason", CONTEXT),
    ]
}

/// Gemini CLI.
fn gemini(event: &str) -> Vec<(&'static str, Field)> {
    let mut fields = vec![("systemMessage", CONTEXT), ("suppressOutput", Bool)];
    let specific = match event {
        "BeforeTool" => vec![("tool_input", Any)],
        "AfterTool" => vec![("additionalContext", CONTEXT), ("tool_output", CONTEXT)],
        "BeforeAgent" | "SessionStart" => vec![("additionalContext", CONTEXT)],
        _ => return fields,
    };
    if event != "SessionStart" {
        fields.extend([
            ("decision", One(&["deny", "block"])),
            ("reason", CONTEXT),
            ("continue", Bool),
            ("stopReason", CONTEXT),
        ]);
    }
    fields.push(("hookSpecificOutput", Object(specific)));
    fields
}

/// Cursor: what it cannot parse blocks the tool.
fn cursor(event: &str) -> Vec<(&'static str, Field)> {
    match event {
        "preToolUse" => vec![
            ("permission", One(&["deny", "ask"])),
            ("user_message", CONTEXT),
            ("agent_message", CONTEXT),
            ("updated_input", Any),
        ],
        "beforeReadFile" => vec![("permission", One(&["deny"])), ("user_message", CONTEXT)],
        "beforeSubmitPrompt" => vec![("continue", Bool), ("user_message", CONTEXT)],
        "postToolUse" => vec![("additional_context", CONTEXT)],
        "sessionStart" => vec![("additional_context", CONTEXT), ("env", Any)],
        _ => Vec::new(),
    }
}

/// opencode's plug-in.
fn opencode(event: &str) -> Vec<(&'static str, Field)> {
    match event {
        "before" => vec![("deny", CONTEXT)],
        "after" => vec![("append", CONTEXT), ("replace", CONTEXT)],
        "prompt" => vec![("append", CONTEXT)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    #[should_panic(expected = "no field \"continue\"")]
    fn codex_takes_no_continue_before_a_tool() {
        check("codex", "PreToolUse", &json!({"continue": true}));
    }

    #[test]
    #[should_panic(expected = "permissionDecision")]
    fn codex_takes_no_ask() {
        check(
            "codex",
            "PreToolUse",
            &json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": "ask", "permissionDecisionReason": "x"}}),
        );
    }

    #[test]
    #[should_panic(expected = "permission")]
    fn nobody_allows() {
        check("cursor", "preToolUse", &json!({"permission": "allow"}));
    }
}
