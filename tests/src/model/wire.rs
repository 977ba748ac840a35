//! Providers' protocols: where a request has its conversation, and the format
//! of an answer.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::Said;

/// All protocols.
pub(super) const WIRES: [&dyn Wire; 4] = [
    &anthropic::Messages,
    &responses::Responses,
    &chat::Completions,
    &gemini::Generate,
];

/// One protocol.
pub(super) trait Wire: Sync {
    /// Returns whether this is a path at which the protocol's requests to a
    /// model arrive.
    fn speaks(&self, path: &str) -> bool;

    /// Returns whether the request wants the answer as a stream.
    fn streams(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    /// Returns the items of the conversation.
    fn items<'a>(&self, body: &'a Value) -> &'a Value;

    /// Returns an answer as a stream of events.
    fn stream(&self, said: &Said, tokens: u64) -> String;

    /// Returns an answer in one piece.
    fn whole(&self, said: &Said, tokens: u64) -> Value;
}

/// Returns the answer to a request that is not for the model.
pub(super) fn other(path: &str) -> Value {
    match path.rsplit(['/', ':']).next() {
        Some("count_tokens") => json!({"input_tokens": 10}),
        Some("countTokens") => json!({"totalTokens": 10}),
        Some("models") => json!({"data": [], "models": []}),
        _ => json!({}),
    }
}

/// Returns whether a request offers tools. A side request offers none.
pub(super) fn offers_tools(body: &Value) -> bool {
    let none = |tool: &Value| tool["functionDeclarations"] == json!([]);
    body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.iter().all(none))
}

/// Returns whether a request forbids the use of its tools, as Claude Code's
/// request for a summary does.
pub(super) fn forbids_tools(sent: &[String]) -> bool {
    sent.last()
        .is_some_and(|last| last.contains("Respond with TEXT ONLY"))
}

/// Returns the texts in a conversation that are not the model's, and those
/// before the model's first answer.
pub(super) fn sent(items: &Value) -> (Vec<String>, String) {
    let mut texts = Vec::new();
    let mut opening = None;
    let single = std::slice::from_ref(items);
    for item in items.as_array().map_or(single, Vec::as_slice) {
        if is_models(item) {
            opening.get_or_insert(texts.len());
        } else {
            leaves(item, &mut texts);
        }
    }
    let opening = texts[..opening.unwrap_or(texts.len())].join("\n");
    (texts, opening)
}

/// Returns whether an item is the model's own.
fn is_models(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    matches!(item["role"].as_str(), Some("assistant" | "model"))
        || kind.ends_with("_call")
        || kind == "reasoning"
}

/// Appends the texts in an item, without fields that only name or describe it.
fn leaves(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| leaves(value, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                if !matches!(
                    name.as_str(),
                    "type" | "role" | "name" | "status" | "cache_control"
                ) && name != "id"
                    && !name.ends_with("_id")
                {
                    leaves(value, texts);
                }
            }
        }
        _ => {}
    }
}

/// Returns an id that no other call or answer has.
fn fresh(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{kind}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Formats events whose name is in `type`, and repeats the name in a separate
/// line.
fn events(values: &[Value]) -> String {
    let named = values.iter().map(|value| {
        let name = value["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {value}\n\n")
    });
    named.collect()
}

/// Formats events without names.
fn data(values: &[Value]) -> String {
    values
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect()
}
