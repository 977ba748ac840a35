//! The parts of the protocol's messages that are used. `uri` stays as the editor
//! wrote it: editors differ in what they escape, and get it back unchanged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A place in a text: line and character from 0, the latter in units of the
/// encoding that was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) character: u32,
}

/// A part of a text. The end is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Range {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// `TextDocumentIdentifier`, also a versioned one.
#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) uri: String,
}

/// `TextDocumentItem`.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) uri: String,
    pub(super) text: String,
}

/// `textDocument/didOpen`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    pub(super) text_document: Item,
}

/// `textDocument/didChange`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    pub(super) text_document: Named,
    pub(super) content_changes: Vec<Change>,
}

/// A change of a text; of the whole text without a range.
#[derive(Debug, Deserialize)]
pub(super) struct Change {
    pub(super) range: Option<Range>,
    pub(super) text: String,
}

/// `textDocument/didSave` and `didClose`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Saved {
    pub(super) text_document: Named,
    pub(super) text: Option<String>,
}

/// `textDocument/hover`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct At {
    pub(super) text_document: Named,
    pub(super) position: Position,
}

/// `textDocument/inlayHint` and `codeAction`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Within {
    pub(super) text_document: Named,
    pub(super) range: Range,
    #[serde(default)]
    pub(super) context: Wanted,
}

/// The kinds of code actions that are wanted; `None`: all.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    pub(super) only: Option<Vec<String>>,
}

/// `workspace/executeCommand`.
#[derive(Debug, Deserialize)]
pub(super) struct Execute {
    pub(super) command: String,
    #[serde(default)]
    pub(super) arguments: Vec<Value>,
}
