//! Requests about edits: the mark before a write, and its end.

use crate::{
    Change, ClientPath, FileState, Hash, HashOrAbsent, Millis, RelPath, SessionId, Version,
};

/// One file of an edit.
#[apply(request!)]
pub struct EditFile {
    /// The file that will be written.
    pub path: ClientPath,
    /// The content that the file will have, or `absent`; `None` if the writer
    /// cannot tell.
    pub expect: Option<HashOrAbsent>,
    /// The content that the edit was computed from; default: the content the
    /// session saw last.
    pub base: Option<Hash>,
}

/// Begins an edit: marks one or more paths as about to be written. Either all
/// paths are marked or none.
#[apply(request!)]
pub struct EditBegin {
    /// The session that writes, by its id or label.
    pub session: SessionId,
    /// The files that will be written.
    pub files: Vec<EditFile>,
    /// Whether the edit ends with this connection, after 2 s of grace (ATTR-9).
    #[serde(default)]
    pub bind: bool,
    /// The agent's id for the tool call.
    pub call_id: Option<String>,
    /// Whether to refuse files that the session has not read (GUARD-4); default
    /// true.
    pub require_read: Option<bool>,
    /// Whether to proceed where `notRead` or `stale` would refuse.
    #[serde(default)]
    pub force: bool,
    /// How long to wait for another session's edit of a path to end, in
    /// milliseconds (GUARD-5). `None` does not wait.
    pub wait_ms: Option<u64>,
    /// How long the edit may stay open, in milliseconds. The default is
    /// `marks.edit_ttl`, or `marks.hook_ttl` with a `callId`.
    pub ttl_ms: Option<u64>,
    /// The name of the tool that writes.
    pub tool: Option<String>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
}

/// An edit that has begun.
#[apply(answer!)]
pub struct EditBegun {
    /// The edit's id, such as `e7`.
    pub edit: String,
    /// When the edit ends, if it is not committed or aborted before.
    pub deadline: Millis,
    /// The current states of the files.
    pub files: Vec<FileState>,
}

/// One file of a commit.
#[apply(request!)]
pub struct CommitFile {
    /// The file that was written.
    pub path: ClientPath,
    /// The content that was written, or `absent`; `None` if the writer cannot
    /// tell.
    pub hash: Option<HashOrAbsent>,
}

/// Commits an edit: the writes are done.
#[apply(request!)]
pub struct EditCommit {
    /// The edit's id. Without it, `session` names the edit, with `callId` if it
    /// has one.
    pub edit: Option<String>,
    /// The session that wrote, if `edit` is not given.
    pub session: Option<SessionId>,
    /// The agent's id for the tool call, if `edit` is not given.
    pub call_id: Option<String>,
    /// The paths whose writes are done; empty means all paths of the edit.
    #[serde(default)]
    pub files: Vec<CommitFile>,
}

/// The result of a declared write (ATTR-10).
#[apply(choice!)]
pub enum Outcome {
    /// The content was written.
    Applied,
    /// The file's content did not change.
    Unchanged,
    /// The content was written, and another writer has changed the file since.
    Overwritten,
    /// The content was written over a version that the session had not seen.
    Clobbered,
    /// The content was not written.
    NotApplied,
}

/// One committed file.
#[apply(answer!)]
pub struct CommittedFile {
    /// The file.
    pub path: RelPath,
    /// The result of the write.
    pub outcome: Outcome,
    /// Whether the commit declares a write that was made before its edit
    /// (ATTR-14).
    pub late: Option<bool>,
    /// The version that was written; `None` if no version was recorded.
    pub version: Option<Version>,
}

/// The result of a commit.
#[apply(answer!)]
pub struct EditCommitted {
    /// One row per file.
    pub files: Vec<CommittedFile>,
    /// The changes that others made to the edit's files while it was open.
    pub changes: Vec<Change>,
}

/// Aborts an edit: none of its writes is the session's.
#[apply(request!)]
pub struct EditAbort {
    /// The edit's id. Without it, `session` and `callId` name the edit.
    pub edit: Option<String>,
    /// The session of the edit, if `edit` is not given.
    pub session: Option<SessionId>,
    /// The agent's id for the tool call, if `edit` is not given.
    pub call_id: Option<String>,
}

/// Sets a one-call mark: the next closed change of the path is the session's
/// (ATTR-8).
#[apply(request!)]
pub struct EditMark {
    /// The session that writes, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The content that the file will have, or `absent`; `None` if the writer
    /// cannot tell.
    pub expect: Option<HashOrAbsent>,
    /// Whether to refuse a file that the session has not read (GUARD-4);
    /// default false.
    #[serde(default)]
    pub require_read: bool,
    /// Whether the edit ends with this connection, after 2 s of grace (ATTR-9).
    #[serde(default)]
    pub bind: bool,
    /// How long the mark stays open, in milliseconds; the default is
    /// `marks.flag_ttl`.
    pub ttl_ms: Option<u64>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
}

/// A mark that has been set.
#[apply(answer!)]
pub struct EditMarked {
    /// The edit's id; null if the mark came after the write.
    pub edit: Option<String>,
    /// When the mark lapses; null if the mark came after the write.
    pub deadline: Option<Millis>,
    /// The current state of the file.
    pub file: FileState,
    /// Whether the mark came after the write, which is now the session's
    /// (ATTR-14).
    pub late: Option<bool>,
}
