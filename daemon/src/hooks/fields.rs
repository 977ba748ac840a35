//! Finds fields in JSON whose format may have grown since.

use std::path::{Path, PathBuf};

use serde_json::Value;
use touchmark_proto::{FreeJson, Hash, SessionId};

/// The maximum length of a call's id in the engine, in bytes.
const MAX_CALL: usize = 200;

/// Returns the first of these fields that is a text and not empty.
pub(super) fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .filter_map(|name| value.get(name)?.as_str())
        .find(|text| !text.is_empty())
}

/// Returns the first of these fields that is a text, which may be empty.
pub(super) fn content<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(name)?.as_str())
}

/// Returns the first of these fields that exists and is not null.
pub(super) fn present<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    let mut found = names.iter().filter_map(|name| value.get(name));
    found.find(|value| !value.is_null())
}

/// Returns the first of these fields that is a number of lines.
pub(super) fn number(value: &Value, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| {
        let number = value.get(name)?;
        // Some models write `10.0`, others `"10"`.
        let whole = number
            .as_f64()
            .or_else(|| number.as_str()?.trim().parse().ok())?;
        (whole >= 0.0 && whole <= f64::from(u32::MAX)).then_some(whole as u32)
    })
}

/// Returns whether one of these fields is true.
pub(super) fn flag(value: &Value, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| value.get(name).and_then(Value::as_bool) == Some(true))
}

/// Returns the session with the agent's id for it.
pub(super) fn session(name: &str) -> Option<SessionId> {
    SessionId::new(name).ok()
}

/// Returns the session of a sub-agent, which has read separately from its
/// parent (SEEN-5).
pub(super) fn child(parent: &SessionId, agent: &str) -> Option<SessionId> {
    let name = format!("{parent}/{agent}");
    SessionId::new(&name)
        .or_else(|_| SessionId::new(&format!("sub-agent {}", Hash::of(name.as_bytes()))))
        .ok()
}

/// Returns the directory in which the agent works: the field with its path, or
/// the first of a list.
pub(super) fn cwd(value: &Value, names: &[&str], lists: &[&str]) -> Option<PathBuf> {
    let first = || present(value, lists)?.as_array()?.first()?.as_str();
    let absolute = |path: &&str| Path::new(path).is_absolute();
    let named = text(value, names).filter(absolute);
    named
        .or_else(|| first().filter(absolute))
        .map(PathBuf::from)
}

/// Returns a tool call's id: the agent's or, if it gives none, a hash of the
/// tool and its arguments.
pub(super) fn call(id: Option<&str>, tool: &str, arguments: &Value) -> String {
    match id {
        Some(id) if id.len() <= MAX_CALL => id.to_owned(),
        Some(id) => Hash::of(id.as_bytes()).to_string(),
        None => {
            let all = format!("{tool} {}", FreeJson(arguments.clone()).canonical());
            Hash::of(all.as_bytes()).to_string()
        }
    }
}

/// Returns the text in a tool's output, in whichever field it is.
pub(super) fn output_text(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    content(
        value,
        &[
            "stdout",
            "output",
            "text",
            "llmContent",
            "content",
            "output_for_prompt",
            "textResultForLlm",
            "text_result_for_llm",
        ],
    )
    .map(str::to_owned)
}
