//! The answers that each agent accepts, from `takes` in its file in
//! `tests/voices`. Fields that are not listed there are refused, as the
//! strictest agents refuse them. Besides, no answer may allow a tool call that
//! the user would have been asked about.

use serde_json::Value;

use super::voice;

/// The longest text, in characters. Agents cut off or drop longer ones.
const LONGEST: usize = 10_000;

/// Checks an answer. Panics if the agent would not accept it.
pub fn check(agent: &str, event: &str, printed: &Value) {
    let takes = &voice::of(agent)["takes"][event];
    let place = format!("{agent} {event}");
    assert!(printed.is_object(), "{place}: no object: {printed}");
    fields(printed, takes, "", event, &place);
    assert!(
        !printed.to_string().contains("\"allow\""),
        "{place}: {printed}"
    );
    for (decision, reason) in [
        (
            "/hookSpecificOutput/permissionDecision",
            "/hookSpecificOutput/permissionDecisionReason",
        ),
        ("/decision", "/reason"),
    ] {
        let reasoned = printed.pointer(reason).is_some();
        assert_eq!(
            printed.pointer(decision).is_some(),
            reasoned,
            "{place}: {printed}"
        );
    }
}

/// Checks all fields below one. `takes` has the type of each field by its name.
fn fields(value: &Value, takes: &Value, above: &str, event: &str, place: &str) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = format!("{above}{name}");
        match &takes[&name] {
            Value::Null if value.is_object() => {
                fields(value, takes, &format!("{name}."), event, place);
            }
            Value::Null => panic!("{place}: no field {name:?}: {value}"),
            Value::Array(one_of) => assert!(one_of.contains(value), "{place}.{name}: {value}"),
            kind => field(
                value,
                kind.as_str().unwrap_or_default(),
                event,
                &format!("{place}.{name}"),
            ),
        }
    }
}

fn field(value: &Value, kind: &str, event: &str, place: &str) {
    match kind {
        "any" => {}
        "bool" => assert!(value.is_boolean(), "{place}: {value}"),
        "event" => assert_eq!(value, event, "{place}"),
        "text" => {
            let text = value.as_str().unwrap_or_else(|| panic!("{place}: {value}"));
            assert!(text.chars().count() <= LONGEST, "{place} is too long");
            assert!(!text.is_empty(), "{place} is empty");
            assert!(
                text.chars().all(|c| c == '\n' || !c.is_control()),
                "{place}: {text:?}"
            );
        }
        other => panic!("{place}: nothing is {other:?}"),
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
