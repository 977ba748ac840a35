//! Requests about what sessions have read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Author, Change, ClientPath, Clock, FileState, Hash, LineRange, Millis, RelPath, SessionId,
    State, Version,
};

/// How a file came into the context.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A tool read it.
    ReadTool,
    /// The session wrote it.
    AgentEdited,
    /// Somebody else wrote it.
    UserEdited,
    /// A message named it.
    FileMentioned,
    /// A tool read it, and what it read was missed (SEEN-9).
    ReadMissed,
}

/// Checks whether this read repeats an earlier one, and records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRead {
    /// Who reads.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The hash of the whole file whose bytes entered the context (SEEN-1).
    pub hash: Option<Hash>,
    /// The lines read; the whole file if absent.
    pub range: Option<LineRange>,
    /// Lines of the whole file, as the client counted them.
    pub total_lines: Option<u32>,
    /// The text that was read, if the client hands it over.
    pub text: Option<String>,
    /// The agent's step.
    pub step: Option<u64>,
    /// How it came into the context: `read_tool` unless told.
    pub source: Option<Source>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash the file for this answer (SYNC-4).
    pub verify: Option<bool>,
}

/// What a read turned out to be (SEEN-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The session had not read it.
    First,
    /// Those lines of that content are in the context already.
    Repeat,
    /// The same content, other lines.
    Extends,
    /// The content differs from what was read before.
    Changed,
}

/// A read as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileReadResult {
    /// What it was.
    pub verdict: Verdict,
    /// How often the session has read the file.
    pub read_count: u32,
    /// The content recorded.
    pub hash: Option<Hash>,
    /// Its lines.
    pub line_count: u32,
    /// One line to say in place of a repeat, or about a change.
    pub message: Option<String>,
    /// Who changed it since the session's earlier read.
    pub changed_by: Option<Vec<Author>>,
    /// When the first of those changes was seen.
    pub since: Option<Millis>,
    /// The same, folded.
    pub change: Option<Change>,
}

/// Reads a file for a session and records what it returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileReadText {
    /// Who reads.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The lines wanted; the whole file if absent.
    pub range: Option<LineRange>,
    /// The agent's step.
    pub step: Option<u64>,
    /// Give the text even for a repeat.
    #[serde(default)]
    pub force: bool,
    /// Record the read; true unless told.
    pub track: Option<bool>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash the file for this answer (SYNC-4).
    pub verify: Option<bool>,
}

/// How a text travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TextEncoding {
    /// As it is.
    Utf8,
    /// The bytes are not UTF-8.
    Base64,
}

/// A file's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileText {
    /// What the read was.
    pub verdict: Verdict,
    /// The text; absent for a repeat.
    pub text: Option<String>,
    /// One line to say in place of a repeat, or about a change.
    pub message: Option<String>,
    /// The content of the whole file.
    pub hash: Option<Hash>,
    /// Its lines.
    pub line_count: u32,
    /// The lines returned.
    pub range: Option<LineRange>,
    /// Not all that was asked for fits one answer: ask for the rest by range.
    pub truncated: bool,
    /// How `text` travels.
    pub encoding: TextEncoding,
}

/// A message names a file: it is tracked from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileMention {
    /// Whose context.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The hash of the whole file, where its bytes entered the context.
    pub hash: Option<Hash>,
    /// The lines that did.
    pub range: Option<LineRange>,
    /// The agent's step.
    pub step: Option<u64>,
    /// The file was read, and nobody knows what that read saw: it is `unknown`
    /// from now on (SEEN-9). Not together with a hash.
    #[serde(default)]
    pub missed: bool,
}

/// Forget what was read: the next read is `first` and full. The right to
/// edit stays (SEEN-1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileInvalidate {
    /// Whose.
    pub session: SessionId,
    /// What; all files if absent.
    pub path: Option<ClientPath>,
}

/// What are the session's copies worth?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileStatus {
    /// Whose.
    pub session: SessionId,
    /// Which; all that the session knows if absent.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Only files in these states.
    #[serde(default)]
    pub state: Vec<State>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// States of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStates {
    /// In the order asked, or by path.
    pub files: Vec<FileState>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
    /// Paths spoken of that could not be read in time: what is said of them,
    /// or not said, is of before. Ask again (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// The session's records of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileList {
    /// Whose.
    pub session: SessionId,
    /// Also superseded records.
    #[serde(default)]
    pub all: bool,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// Whether a record speaks of what is in the context now.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum RecordState {
    /// The newest record of its path.
    Active,
    /// A newer one stands in its place.
    Stale,
}

/// One record of one file in one session's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRecord {
    /// The path.
    pub path: RelPath,
    /// Newest of its path, or superseded.
    pub record_state: RecordState,
    /// How the file came into the context.
    pub record_source: Source,
    /// When the session last read it.
    pub agent_read_date: Option<Millis>,
    /// When the session last wrote it.
    pub agent_edit_date: Option<Millis>,
    /// When somebody else last wrote it.
    pub user_edit_date: Option<Millis>,
    /// How often the session read it.
    pub read_count: u32,
    /// The agent's step at its last access.
    pub last_step: Option<u64>,
    /// When the session last accessed it.
    pub last_access_time: Millis,
    /// Lines of the content seen.
    pub line_count: u32,
    /// The first 200 characters seen; empty for secrets (SEC-3).
    pub preview: String,
    /// Whether the session wrote it.
    pub was_modified: bool,
}

/// Records of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileRecords {
    /// One active row per path.
    pub files: Vec<FileRecord>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
    /// Files that could not be read in time: what is said of them is of before
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// All versions of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileHistory {
    /// What.
    pub path: ClientPath,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Only versions before this clock.
    pub before: Option<Clock>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash the file for this answer (SYNC-4).
    pub verify: Option<bool>,
}

/// Versions of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// Newest first, the baseline last, corrections as rows of their own.
    pub versions: Vec<Version>,
    /// There is more: ask again with `before` set to this clock.
    pub more: Option<Clock>,
}

/// Stop tracking a path for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileUntrack {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
}

/// Files that a session accessed lately, counted in its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileRecent {
    /// Whose.
    pub session: SessionId,
    /// The agent's step now.
    pub step: u64,
    /// Recent is what was accessed at most this many steps ago.
    pub max_age: u64,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// Was a file accessed too many steps ago? This says nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileIsStale {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// The agent's step now.
    pub step: u64,
    /// Not stale is what was accessed at most this many steps ago.
    pub max_age: u64,
}

/// How long ago a file was accessed, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileAge {
    /// Longer ago than asked for, or never.
    pub stale: bool,
    /// Steps since; `null` where the session never named a step for it.
    pub age: Option<u64>,
}

/// Takes down what a file is like at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSnapshot {
    /// What.
    pub path: ClientPath,
}

/// What a file was like at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Which.
    pub path: ClientPath,
    /// Its modification time.
    pub mtime_ms: Millis,
    /// In bytes.
    pub size: u64,
    /// Its content; `null` where there was no file.
    pub hash: Option<Hash>,
}

/// Compares a file with a snapshot of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileDetect {
    /// As `file/snapshot` answered it.
    pub snapshot: Snapshot,
}

/// What differs from a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotChanges {
    /// The modification time.
    pub mtime_changed: bool,
    /// The size.
    pub size_changed: bool,
    /// The content.
    pub content_changed: bool,
}

/// Whether a file was modified since a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCompared {
    /// Its content differs: neither a touch nor an equal size says so.
    pub modified: bool,
    /// What differs, one by one.
    pub changes: SnapshotChanges,
}
