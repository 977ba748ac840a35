//! The output of the tools: the daemon's answers and errors as tool results.
//!
//! Clients give structured content to the model instead of the text, and an
//! output schema would require it. So there is neither. The text is for the
//! model, and touchmark's own result is in `_meta`, for programs.

use std::path::Path;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject};
use serde_json::{Value, json};
use touchmark_client::Error;
use touchmark_client::proto::codec::json::error_to_json;
use touchmark_client::proto::quoting::restore_command;
use touchmark_client::proto::{RelPath, SessionId, native};

use crate::output::one_line;
use crate::text::{time_of_day, without_hidden, zone};

/// The field of `_meta` with touchmark's own result.
const RESULT: &str = "touchmark/result";

/// Returns a result as JSON, with the labels of sessions. Names are escaped in
/// the text, so that no characters are hidden (SEC-4).
pub(crate) fn answer(value: Value, own: &SessionId) -> CallToolResult {
    let shown = for_a_model(value.clone(), own);
    text(shown, value)
}

/// Returns a result whose text is given to the model unchanged.
pub(crate) fn text(text: String, value: Value) -> CallToolResult {
    with_result(
        CallToolResult::success(vec![ContentBlock::text(text)]),
        value,
    )
}

fn with_result(mut result: CallToolResult, value: Value) -> CallToolResult {
    let members = JsonObject::from_iter([(RESULT.to_owned(), value)]);
    result.meta = Some(MetaObject(members));
    result
}

/// Formats a result for a model: on one line, with the session labels that the
/// model gets elsewhere.
pub(crate) fn for_a_model(mut value: Value, own: &SessionId) -> String {
    labelled(&mut value, own);
    with_way_back(&mut value);
    without_hashes(&mut value);
    one_line(&value)
}

/// Removes the hashes, of which a model has no use.
fn without_hashes(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_hashes),
        Value::Object(members) => {
            members.retain(|name, _| !matches!(name.as_str(), "hash" | "seenHash"));
            members.values_mut().for_each(without_hashes);
        }
        _ => {}
    }
}

/// Replaces the ids of sessions by their labels, and the id of the reader's own
/// session by `this session`.
fn labelled(value: &mut Value, own: &SessionId) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|one| labelled(one, own)),
        Value::Object(members) => {
            if let Some(Value::String(id)) = members.get("session") {
                let own = (id == own.as_str()).then(|| Value::from("this session"));
                let label = members.remove("label");
                if let Some(name) = own.or(label) {
                    members.insert("session".into(), name);
                }
            }
            members.values_mut().for_each(|one| labelled(one, own));
        }
        _ => {}
    }
}

/// Adds the command that restores a lost version to each one.
fn with_way_back(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(with_way_back),
        Value::Object(members) => {
            if let Some(Value::Object(lost)) = members.get_mut("lost")
                && let Some(command) = way_back(lost)
            {
                lost.insert("restore".into(), command.into());
            }
            members.values_mut().for_each(with_way_back);
        }
        _ => {}
    }
}

fn way_back(lost: &JsonObject) -> Option<String> {
    let path = RelPath::new(lost.get("path")?.as_str()?.as_bytes()).ok()?;
    let clock = lost.get("clock")?.as_str()?.parse().ok()?;
    let is_content = lost.get("hash").is_some_and(Value::is_string);
    is_content.then(|| restore_command(&path, clock)).flatten()
}

/// Returns an error as a tool result, so that the model can act on it.
pub(crate) fn refused(error: &Error, root: &Path) -> CallToolResult {
    failed(fields(error, root))
}

/// Returns an error for arguments that do not fit the schema, as a tool result.
pub(crate) fn wrong_arguments(message: &str) -> CallToolResult {
    let hint = "compare the arguments with the tool's inputSchema";
    failed(json!({"code": "invalidParams", "message": message, "hint": hint}))
}

/// Returns an error for programs: `code` is a stable name (`stale`, `notRead`,
/// ...), `message` one sentence, and `hint` what to do next. The other fields
/// are those of the protocol's table.
pub(crate) fn fields(error: &Error, root: &Path) -> Value {
    let fields = error
        .daemon()
        .map(|error| error_to_json(error, &native::bytes(root))["data"].take());
    let mut fields = match fields {
        Some(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    };
    fields.insert("code".into(), error.code().into());
    fields.insert("message".into(), error.to_string().into());
    fields.insert("hint".into(), error.hint().into());
    fields.into()
}

fn failed(error: Value) -> CallToolResult {
    let said = |name: &str| without_hidden(error[name].as_str().unwrap_or_default());
    let when = error["since"].as_u64().filter(|_| error["code"] == "stale");
    let when = when.map(|since| format!(" at {}", time_of_day(since, &zone())));
    let text = format!(
        "{}{} ({}): {}",
        said("message"),
        when.unwrap_or_default(),
        said("code"),
        said("hint")
    );
    let result = CallToolResult::error(vec![ContentBlock::text(text)]);
    with_result(result, json!({"error": error}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_model_reads_how_what_was_lost_comes_back() {
        let own = SessionId::new("own").unwrap();
        let lost = json!({"clock": "3:17", "path": "a.rs", "hash": "00"});
        let text = for_a_model(json!({"changes": [{"lost": lost}]}), &own);
        let said: Value = serde_json::from_str(&text).unwrap();
        let command = &said["changes"][0]["lost"]["restore"];
        assert_eq!(command, "touchmark restore \"a.rs@17\" --missing");
    }

    #[test]
    fn a_model_reads_labels() {
        let own = SessionId::new("own-id").unwrap();
        let author =
            |id: &str, label: &str| json!({"kind": "agent", "session": id, "label": label});
        let value = json!({"versions": [
            {"author": author("own-id", "mcp-1")},
            {"author": author("other-id", "claude-2"), "label": "a checkpoint's"},
            {"author": {"kind": "user"}},
        ]});
        let text = for_a_model(value, &own);
        let said: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(said["versions"][0]["author"]["session"], "this session");
        assert_eq!(said["versions"][1]["author"]["session"], "claude-2");
        assert_eq!(said["versions"][1]["label"], "a checkpoint's");
        assert_eq!(said["versions"][2], json!({"author": {"kind": "user"}}));
        assert!(!text.contains("-id"), "{text}");
    }
}
