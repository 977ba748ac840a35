//! Requests that write through the daemon, and the bytes it kept (GUARD).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edits::Outcome;
use crate::files::TextEncoding;
use crate::{Author, ClientPath, Hash, Millis, RelPath, SessionId, Version};

/// Writes a whole file, if it is still what the session has seen (GUARD-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileWrite {
    /// Who writes.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The new content as text; either this or `base64`.
    pub text: Option<String>,
    /// The new content as base64; either this or `text`.
    pub base64: Option<String>,
    /// The content the new one was computed from: the seen one unless told.
    pub base: Option<Hash>,
    /// Overrides `notRead` and `stale`; what is overwritten unseen is kept.
    #[serde(default)]
    pub force: bool,
    /// Refuse a file not read (GUARD-4); true unless told.
    pub require_read: Option<bool>,
    /// Make the directories that are missing.
    #[serde(default)]
    pub create_directories: bool,
    /// The agent's step.
    pub step: Option<u64>,
}

/// Replaces a text in a file, if the file is still what the session has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEdit {
    /// Who writes.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The text to replace. It must be there once, unless `replaceAll`.
    pub old_string: String,
    /// What stands in its place.
    pub new_string: String,
    /// Replace it wherever it is.
    #[serde(default)]
    pub replace_all: bool,
    /// Overrides `notRead` and `stale`.
    #[serde(default)]
    pub force: bool,
    /// The agent's step.
    pub step: Option<u64>,
}

/// How a write was guarded (GUARD-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Guard {
    /// Old and new file were exchanged atomically, and what came out looked
    /// at.
    Exchange,
    /// The name was given only if nobody had it.
    Noreplace,
    /// Written in place after a check.
    Checked,
}

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileWritten {
    /// The version written; null if the file held that already and nobody has
    /// written it since it is tracked.
    pub version: Option<Version>,
    /// What became of it: `applied`, `unchanged`, `overwritten`, `clobbered`.
    pub outcome: Outcome,
    /// How it was guarded.
    pub guard: Guard,
    /// Whether a lease told of others who had the file open.
    pub lease: bool,
    /// Absolute paths of bytes kept because the session had not seen them.
    pub recovered: Vec<String>,
}

/// How the text to replace was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Matched {
    /// As it was given.
    Exact,
    /// With other quotation marks; the file keeps its own.
    Quotes,
    /// With other line endings; the file keeps its own.
    LineEndings,
}

/// A file as it was edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEdited {
    /// The version written; null if the file held that already and nobody has
    /// written it since it is tracked.
    pub version: Option<Version>,
    /// What became of it: `applied`, `unchanged`, `overwritten`, `clobbered`.
    pub outcome: Outcome,
    /// How it was guarded.
    pub guard: Guard,
    /// Whether a lease told of others who had the file open.
    pub lease: bool,
    /// Absolute paths of bytes kept because the session had not seen them.
    pub recovered: Vec<String>,
    /// How the text was found.
    pub matched: Matched,
    /// How often it was replaced.
    pub replacements: u32,
    /// The line of the first replacement.
    pub line: u32,
}

/// Bytes that would have lost their name, and were kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryItem {
    /// Its name here.
    pub id: String,
    /// Of which file.
    pub path: RelPath,
    /// The content.
    pub hash: Hash,
    /// Who wrote it, where that is known.
    pub author: Option<Author>,
    /// When it was kept.
    pub time: Millis,
    /// In bytes.
    pub size: u64,
    /// Where it is kept: an absolute path.
    pub file: String,
}

/// What was kept?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecoveryList {
    /// Only this one.
    pub id: Option<String>,
}

/// Kept bytes, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryItems {
    /// Each of them.
    pub items: Vec<RecoveryItem>,
}

/// What is in it?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecoveryShow {
    /// Which.
    pub id: String,
}

/// Kept bytes with their content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryShown {
    /// The one item.
    pub items: Vec<RecoveryItem>,
    /// Its content, up to `limits.read_text` bytes.
    pub text: String,
    /// How the content is written in `text`.
    pub encoding: TextEncoding,
    /// There is more in the item's file.
    pub truncated: bool,
}

/// Gives kept bytes their name back. What is there now is kept in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecoveryRestore {
    /// Which.
    pub id: String,
}

/// Kept bytes with their name back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryRestored {
    /// The one item; it stays kept until it is deleted.
    pub items: Vec<RecoveryItem>,
    /// Absolute paths of what was there, kept in turn.
    pub recovered: Vec<String>,
}

/// Removes kept bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecoveryDelete {
    /// Which.
    pub id: String,
}

/// Asks for straight quotation marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotesNormalize {
    /// Any text.
    pub text: String,
}

/// A text with straight quotation marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotesNormalized {
    /// The text.
    pub text: String,
}

/// Looks for a text whatever its quotation marks; an exact match wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuotesMatch {
    /// What to look for.
    pub needle: String,
    /// Where.
    pub haystack: String,
}

/// Where a text was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotesFound {
    /// Always true.
    pub matched: bool,
    /// Where it begins in the haystack, in code points.
    pub position: u32,
    /// As it stands in the haystack.
    pub original_match: String,
    /// The same with straight quotation marks.
    pub normalized_match: String,
}
