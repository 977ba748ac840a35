//! Requests about writes: the mark before the write, and its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Change, ClientPath, FileState, Hash, HashOrAbsent, Millis, RelPath, SessionId, Version,
};

/// One file of an edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditFile {
    /// What will be written.
    pub path: ClientPath,
    /// What it will hold then, where the writer knows.
    pub expect: Option<HashOrAbsent>,
    /// The content the edit was computed from: the seen one unless told.
    pub base: Option<Hash>,
}

/// Marks one or more paths as about to be written. All or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditBegin {
    /// Who writes.
    pub session: SessionId,
    /// What.
    pub files: Vec<EditFile>,
    /// End it with this connection (ATTR-9).
    #[serde(default)]
    pub bind: bool,
    /// The agent's own name of the tool call.
    pub call_id: Option<String>,
    /// Refuse files not read (GUARD-4); true unless told.
    pub require_read: Option<bool>,
    /// Overrides `notRead` and `stale`.
    #[serde(default)]
    pub force: bool,
    /// Wait that long for another session's edit to end (GUARD-5).
    pub wait_ms: Option<u64>,
    /// How long the edit may stay open.
    pub ttl_ms: Option<u64>,
    /// The tool's name.
    pub tool: Option<String>,
    /// The agent's step.
    pub step: Option<u64>,
}

/// An edit that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditBegun {
    /// Its name.
    pub edit: String,
    /// When it ends by itself.
    pub deadline: Millis,
    /// The files as they are.
    pub files: Vec<FileState>,
}

/// One file of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitFile {
    /// What was written.
    pub path: ClientPath,
    /// What was written there, where the writer knows.
    pub hash: Option<HashOrAbsent>,
}

/// Ends an edit: the writes are done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditCommit {
    /// The edit, or `session` (with `callId`) in its place.
    pub edit: Option<String>,
    /// Who wrote, where the edit is not named.
    pub session: Option<SessionId>,
    /// The agent's own name of the tool call.
    pub call_id: Option<String>,
    /// These paths are done; all of the edit's if absent.
    #[serde(default)]
    pub files: Vec<CommitFile>,
}

/// What became of a declared write (ATTR-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was written.
    Applied,
    /// The write changed nothing.
    Unchanged,
    /// It was written, and somebody has changed the file since.
    Overwritten,
    /// It was written over a version that the session had not seen.
    Clobbered,
    /// Nothing of it was written.
    NotApplied,
}

/// One committed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommittedFile {
    /// What.
    pub path: RelPath,
    /// What became of it.
    pub outcome: Outcome,
    /// It was declared after it was written (ATTR-14).
    pub late: Option<bool>,
    /// The version that was written.
    pub version: Option<Version>,
}

/// A commit's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditCommitted {
    /// Each file.
    pub files: Vec<CommittedFile>,
    /// What others did to those files meanwhile.
    pub changes: Vec<Change>,
}

/// Ends an edit: nothing of it counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditAbort {
    /// The edit, or `session` and `callId` in its place.
    pub edit: Option<String>,
    /// Who gave up.
    pub session: Option<SessionId>,
    /// The agent's own name of the tool call.
    pub call_id: Option<String>,
}

/// The classic flag: the next closed change of the path is mine (ATTR-8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditMark {
    /// Who writes.
    pub session: SessionId,
    /// What.
    pub path: ClientPath,
    /// What it will hold then, where the writer knows.
    pub expect: Option<HashOrAbsent>,
    /// Refuse a file not read (GUARD-4); false unless told.
    #[serde(default)]
    pub require_read: bool,
    /// End it with this connection (ATTR-9).
    #[serde(default)]
    pub bind: bool,
    /// How long the mark holds.
    pub ttl_ms: Option<u64>,
    /// The agent's step.
    pub step: Option<u64>,
}

/// A mark that has been set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditMarked {
    /// Its name; null where it came after the write.
    pub edit: Option<String>,
    /// When it lapses; null where it came after the write.
    pub deadline: Option<Millis>,
    /// The file as it is.
    pub file: FileState,
    /// It came after the write and has spoken for it (ATTR-14).
    pub late: Option<bool>,
}
