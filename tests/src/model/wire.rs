//! Providers' protocols: where a request has its conversation, and how an
//! answer is spelled.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use super::Said;

/// All of them.
pub(super) const WIRES: [&dyn Wire; 4] = [
    &anthropic::Messages,
    &responses::Responses,
    &chat::Completions,
    &gemini::Generate,
];

/// One protocol.
pub(super) trait Wire: Sync {
    /// Whether a path is where this protocol asks a model.
    fn speaks(&self, path: &str) -> bool;

    /// Whether the answer is wanted as a stream.
    fn streams(&self, _path: &str, body: &Value) -> bool {
        body["stream"] == true
    }

    /// The items of the conversation.
    fn items<'a>(&self, body: &'a Value) -> &'a Value;

    /// An answer as a stream of events.
    fn stream(&self, said: &Said, tokens: u64) -> String;

    /// An answer in one piece.
    fn whole(&self, said: &Said, tokens: u64) -> Value;
}

/// The answer to whatever else is asked.
pub(super) fn other(path: &str) -> Value {
    match path.rsplit(['/', ':']).next() {
        Some("count_tokens") => json!({"input_tokens": 10}),
        Some("countTokens") => json!({"totalTokens": 10}),
        Some("models") => json!({"data": [], "models": []}),
        _ => json!({}),
    }
}

/// Whether a request offers tools: a side request offers none.
pub(super) fn offers_tools(body: &Value) -> bool {
    let none = |tool: &Value| tool["functionDeclarations"] == json!([]);
    body["tools"]
        .as_array()
        .is_some_and(|tools| !tools.iter().all(none))
}

/// Whether a request says that its tools are not to be used, as Claude Code's
/// for a summary does.
pub(super) fn forbids_tools(sent: &[String]) -> bool {
    sent.last()
        .is_some_and(|last| last.contains("Respond with TEXT ONLY"))
}

/// What a conversation holds that is not the model's, and its opening.
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

/// Whether the model has said an item itself.
fn is_models(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or_default();
    matches!(item["role"].as_str(), Some("assistant" | "model"))
        || kind.ends_with("_call")
        || kind == "reasoning"
}

/// The texts in an item, without what only names or describes it.
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

/// A name that no other call or answer has.
fn fresh(kind: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{kind}_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Events that carry their name in `type`, with a line that says it, too.
fn events(values: &[Value]) -> String {
    let named = values.iter().map(|value| {
        let name = value["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {value}\n\n")
    });
    named.collect()
}

/// Events without names.
fn data(values: &[Value]) -> String {
    values
        .iter()
        .map(|value| format!("data: {value}\n\n"))
        .collect()
}
