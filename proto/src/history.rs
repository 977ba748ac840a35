//! Requests that look at a file as it was, or give it back (HIST).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::at::At;
use crate::files::TextEncoding;
use crate::{
    Author, ClientPath, Clock, Evidence, Hash, LineCounts, LineRange, Millis, RelPath, Version,
    VersionKind,
};

/// What a file held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileContent {
    /// Which file.
    pub path: ClientPath,
    /// Which version; what the file holds now if absent.
    pub at: Option<At>,
}

/// A content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContentAt {
    /// Which file.
    pub path: RelPath,
    /// The version; `None` for a file that nobody has named before, and for
    /// what a session saw and no version held.
    pub clock: Option<Clock>,
    /// All of it.
    pub text: String,
    /// How it travels in `text`.
    pub encoding: TextEncoding,
    /// Of the bytes.
    pub hash: Hash,
    /// In bytes.
    pub size: u64,
}

/// What changed between two versions of a file, or of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileDiff {
    /// One file: its hunks are the answer's own. Not together with `paths`.
    pub path: Option<ClientPath>,
    /// Files, and directories for what lies below them. Without these and
    /// without `path`: all that changed.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// The older version.
    pub from: At,
    /// The newer; what the file holds now if absent.
    pub to: Option<At>,
    /// Lines around each change; 3 unless told.
    pub context: Option<u32>,
    /// At most this many files (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// In which of two versions a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LineKind {
    /// In both.
    Context,
    /// In the newer alone.
    Added,
    /// In the older alone.
    Removed,
}

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffLine {
    /// In which version it is.
    pub kind: LineKind,
    /// Without its line feed. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The bytes, where they are not UTF-8.
    pub base64: Option<String>,
    /// The file ends with it, without a line feed.
    pub no_newline: Option<bool>,
    /// Who put it there or, of a removed line, took it away.
    pub author: Author,
    /// When that was seen.
    pub time: Millis,
    /// What the name rests on.
    pub evidence: Evidence,
    /// The version that did it; `None` in a file that nobody has named.
    pub clock: Option<Clock>,
}

/// Lines that changed, with some around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiffHunk {
    /// Its first line in the older version; the one before it where it has no
    /// line there.
    pub old_start: u32,
    /// How many lines it has there.
    pub old_lines: u32,
    /// Its first line in the newer version, likewise.
    pub new_start: u32,
    /// How many lines it has there.
    pub new_lines: u32,
    /// In the order of the file, of each change the removed ones first.
    pub lines: Vec<DiffLine>,
}

/// What changed in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDifference {
    /// Which.
    pub path: RelPath,
    /// What became of it, all in all.
    pub kind: VersionKind,
    /// The older version; `None` where that is not one.
    pub from_clock: Option<Clock>,
    /// The older content; null where there was no file.
    pub from_hash: Option<Hash>,
    /// The newer version.
    pub to_clock: Option<Clock>,
    /// The newer content; null where there is no file.
    pub to_hash: Option<Hash>,
    /// Lines added and removed; `None` for what is no text, or not kept.
    pub lines: Option<LineCounts>,
    /// It is no text: there are no hunks.
    pub binary: Option<bool>,
    /// Why there are no hunks of what is no longer kept, or never was.
    pub cause: Option<String>,
    /// What changed; `None` also where the request named the one `path`: they
    /// are the answer's own.
    pub hunks: Option<Vec<DiffHunk>>,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiffs {
    /// Each file that differs, by path.
    pub files: Vec<FileDifference>,
    /// What changed in the one `path` that was named; absent for `paths`.
    pub hunks: Option<Vec<DiffHunk>>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}

/// Who wrote each line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileBlame {
    /// Which file.
    pub path: ClientPath,
    /// Which version; what the file holds now if absent.
    pub at: Option<At>,
    /// These lines; all if absent.
    pub range: Option<LineRange>,
}

/// A line, with who put it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlameLine {
    /// Without its line feed. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The bytes, where they are not UTF-8.
    pub base64: Option<String>,
    /// Who; unknown for what was there before touchmark looked, and where
    /// versions of several authors count as one, since not all are kept.
    pub author: Author,
    /// When that was seen.
    pub time: Millis,
    /// What the name rests on.
    pub evidence: Evidence,
    /// The version that the line came with; `None` in a file that nobody has
    /// named.
    pub clock: Option<Clock>,
    /// The edit that wrote it.
    pub edit: Option<String>,
    /// The command in whose window it was written.
    pub command: Option<String>,
}

/// Who wrote a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Which.
    pub path: RelPath,
    /// The version; `None` for a file that nobody has named.
    pub clock: Option<Clock>,
    /// Its content.
    pub hash: Hash,
    /// The number of the first of `lines`.
    pub start: u32,
    /// One for each line of the file.
    pub lines: Vec<BlameLine>,
}

/// Versions of all files, or of some, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileLog {
    /// Files, and directories for what lies below them; all if absent.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Only versions after that. A time, a clock or a checkpoint.
    pub since: Option<At>,
    /// Count the lines that each version added and removed.
    #[serde(default)]
    pub lines: bool,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Only versions before this clock.
    pub before: Option<Clock>,
}

/// A version of some file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    /// By the author that its newest correction names.
    pub version: Version,
    /// Lines added and removed, where asked for and both texts are kept.
    pub lines: Option<LineCounts>,
}

/// Versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEntries {
    /// Newest first, without what was there before touchmark looked.
    pub entries: Vec<LogEntry>,
    /// There may be more: ask again with `before` set to this clock.
    pub more: Option<Clock>,
}

/// Gives a file back what it held. What is there now is kept, and this is a
/// version of the user's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRestore {
    /// Which file.
    pub path: ClientPath,
    /// Which version. One at which there was no file removes it.
    pub at: At,
}

/// What became of a file that was to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Restoration {
    /// It holds that version again.
    Restored,
    /// It is gone, as in that version.
    Removed,
    /// It held that already.
    Unchanged,
}

/// A file that was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredFile {
    /// Which.
    pub path: RelPath,
    /// What became of it.
    pub outcome: Restoration,
    /// The version that it holds again; `None` for what a session saw and no
    /// version held.
    pub clock: Option<Clock>,
    /// How many places of the file changed; 0 where that cannot be counted.
    pub hunks: u32,
    /// Absolute paths of what was there, kept (`recovery/list`).
    pub recovered: Vec<String>,
}

/// Files that were given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The one.
    pub files: Vec<RestoredFile>,
}
