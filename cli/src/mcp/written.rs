//! What a model reads after it has read, edited or written a file: the text, or
//! what changed and what to do next.

use std::fmt::Write as _;

use serde_json::Value;
use touchmark_client::proto::quoting::quoted;

use super::arguments::{EditFile, WriteFile};
use crate::text::{count, without_hidden};

/// The maximum length of a path in a sentence, in characters.
const NAME: usize = 200;

/// Returns a read: the text itself, or the message that replaces it.
pub(super) fn read(path: &str, read: &Value) -> String {
    let said = |name: &str| read[name].as_str();
    let file = quoted(path, NAME);
    let mut text = match said("text") {
        Some(text) if read["encoding"] == "base64" => {
            format!("[{file} is no text. Its bytes follow as base64.]\n{text}")
        }
        Some(text) => text.to_owned(),
        None => said("message").unwrap_or_default().to_owned(),
    };
    if read["truncated"] == true {
        text.push_str("\n[There is more: read the rest by startLine and endLine.]");
    }
    if let Some(charset) = said("charset") {
        let charset = without_hidden(charset);
        let note = "edit_file and write_file keep that";
        let _ = write!(text, "\n[{file} is stored as {charset}; {note}.]");
    }
    text
}

/// Returns the result of an edit.
pub(super) fn edit(asked: &EditFile, edited: &Value) -> String {
    let file = quoted(&asked.path, NAME);
    if edited["outcome"] == "unchanged" {
        return format!("{file} has this text already: nothing was written.");
    }
    let line = edited["line"].as_u64().unwrap_or(1);
    let added = asked.new_string.lines().count() as u64;
    let end = line + added.max(1) - 1;
    let place = match (edited["replacements"].as_u64(), added) {
        (Some(count), _) if count > 1 => format!("{count} places, the first at line {line}"),
        (_, 0) => format!("the text at line {line} was removed"),
        (_, 1) => format!("line {line}"),
        _ => format!("lines {line}-{end}"),
    };
    let how = match edited["matched"].as_str() {
        Some("quotes") => " The file's own quotation marks were kept.",
        Some("lineEndings") => " The file's own line endings were kept.",
        _ => "",
    };
    format!("{file} was edited: {place}.{how} {}", rest(edited))
}

/// Returns the result of a whole write.
pub(super) fn write(asked: &WriteFile, written: &Value) -> String {
    let file = quoted(&asked.path, NAME);
    if written["outcome"] == "unchanged" {
        return format!("{file} has this content already: nothing was written.");
    }
    let lines = count(asked.text.lines().count() as u64, "line");
    let what = match written["version"]["kind"].as_str() {
        Some("created") => "created",
        _ => "written",
    };
    format!("{file} was {what}: {lines}. {}", rest(written))
}

/// Returns what happened to others' versions; else that a read is not needed.
fn rest(written: &Value) -> String {
    let mut rest = match written["outcome"].as_str() {
        Some("overwritten") => "Another author has changed it since: read it again.",
        Some("clobbered") => "It replaced a version that you had not seen.",
        Some("notApplied") => "But another author's content is there now: read it again.",
        _ => "It need not be read again before the next edit.",
    }
    .to_owned();
    let kept = written["recovered"].as_array();
    for copy in kept.into_iter().flatten().filter_map(Value::as_str) {
        let copy = quoted(copy, 4_096);
        let _ = write!(rest, " What you had not seen of it is kept in {copy}.");
    }
    rest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_is_told_by_its_lines() {
        let asked = |new: &str| -> EditFile {
            let asked = json!({"path": "a.rs", "oldString": "x", "newString": new});
            serde_json::from_value(asked).unwrap()
        };
        let done = json!({"outcome": "applied", "line": 3, "replacements": 1, "matched": "exact"});
        assert_eq!(
            edit(&asked("a\nb\n"), &done),
            "\"a.rs\" was edited: lines 3-4. It need not be read again before the next edit."
        );
        assert_eq!(
            edit(&asked(""), &done),
            "\"a.rs\" was edited: the text at line 3 was removed. It need not be read again before the next edit."
        );
        let late = json!({"outcome": "overwritten", "line": 3, "replacements": 2,
            "matched": "lineEndings"});
        assert_eq!(
            edit(&asked("a"), &late),
            "\"a.rs\" was edited: 2 places, the first at line 3. The file's own line endings were kept. Another author has changed it since: read it again."
        );
    }

    #[test]
    fn base64_and_other_encodings_are_named() {
        let bytes = json!({"text": "AAEC", "encoding": "base64"});
        assert_eq!(
            read("a.png", &bytes),
            "[\"a.png\" is no text. Its bytes follow as base64.]\nAAEC"
        );
        let text = json!({"text": "\u{df}\n", "encoding": "utf8", "charset": "windows-1252"});
        assert!(
            read("a.ini", &text).starts_with("\u{df}\n\n[\"a.ini\" is stored as windows-1252;")
        );
    }
}
