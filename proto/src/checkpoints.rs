//! Requests about checkpoints, and about the warnings that result from them
//! (CHK).

use crate::sessions::Warning;
use crate::{Author, ClientPath, Clock, Millis, RelPath, SessionId};

/// Creates a checkpoint at the current moment.
#[apply(request!)]
pub struct CheckpointCreate {
    /// The session, by its id or label.
    pub session: SessionId,
    /// A name for people to read; it need not be unique.
    pub label: Option<String>,
    /// The agent's id for the message that the checkpoint belongs to.
    pub message: Option<String>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
    /// The beginning of the prompt that the checkpoint belongs to: at most 80
    /// characters, in one line, without tokens (SEC-3). `None` if it is not
    /// known.
    pub text: Option<String>,
}

/// A checkpoint that was created.
#[apply(answer!)]
pub struct CheckpointCreated {
    /// The checkpoint's id, such as `k3`.
    pub checkpoint: String,
    /// The clock of the checkpoint.
    pub clock: Clock,
    /// The time of the checkpoint.
    pub time: Millis,
}

/// Lists the checkpoints of a session, oldest first.
#[apply(request!)]
pub struct CheckpointList {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// A checkpoint.
#[apply(answer!)]
pub struct CheckpointRow {
    /// The checkpoint's id, such as `k3`.
    pub checkpoint: String,
    /// The clock of the checkpoint.
    pub clock: Clock,
    /// The time of the checkpoint.
    pub time: Millis,
    /// A name for people to read; it need not be unique.
    pub label: Option<String>,
    /// The agent's id for the message that the checkpoint belongs to.
    pub message: Option<String>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
    /// The beginning of the prompt that the checkpoint belongs to: at most 80
    /// characters, in one line, without tokens (SEC-3). `None` if it is not
    /// known.
    pub text: Option<String>,
}

/// A list of checkpoints.
#[apply(answer!)]
pub struct CheckpointRows {
    /// The checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointRow>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}

/// Deletes a checkpoint.
#[apply(request!)]
pub struct CheckpointDelete {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The checkpoint's id.
    pub checkpoint: String,
}

/// A file operation of a message that was deleted when the agent went back to a
/// checkpoint.
#[apply(request!)]
pub struct DeletedOperation {
    /// The file.
    pub path: ClientPath,
    /// The name of the tool. Operations that only read (`read_tool`,
    /// `read_file`, `file_mentioned`) do not count.
    pub operation: String,
    /// When the operation happened.
    pub time: Option<Millis>,
}

/// Lists the files that were edited after a moment (CHK-1). Exactly one of
/// `checkpoint`, `clock` and `time` names the moment.
#[apply(request!)]
pub struct CheckpointDetect {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The moment, as the id of one of the session's checkpoints.
    pub checkpoint: Option<String>,
    /// The moment, as a clock.
    pub clock: Option<Clock>,
    /// The moment, as a time.
    pub time: Option<Millis>,
    /// Only these files; `None` means all.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// File operations of the deleted messages.
    #[serde(default)]
    pub deleted: Vec<DeletedOperation>,
    /// Whether to store a result that is not empty as the session's warning
    /// (CHK-2); default false.
    #[serde(default)]
    pub store_warning: bool,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash every path that the request covers first
    /// (SYNC-4); default false.
    pub verify: Option<bool>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// A file that was edited after a moment.
#[apply(answer!)]
pub struct EditedFile {
    /// The file.
    pub path: RelPath,
    /// The authors of the edits, in the order of their first one. Empty if only
    /// a deleted message names the file.
    pub edited_by: Vec<Author>,
    /// When the daemon saw the first edit.
    pub first_edit: Option<Millis>,
    /// When the daemon saw the last edit.
    pub last_edit: Option<Millis>,
    /// The number of versions.
    pub versions: u32,
    /// Whether the content differs from that of the moment; `null` if the path
    /// was not tracked then.
    pub differs: Option<bool>,
    /// Whether an operation of a deleted message names the file.
    pub from_deleted_messages: bool,
}

/// The files that were edited after a moment.
#[apply(answer!)]
pub struct CheckpointDetected {
    /// One row per path, sorted by path.
    pub files: Vec<EditedFile>,
    /// The warning that was stored, if one was.
    pub warning: Option<Warning>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}

/// Stores a warning for a session. It replaces an earlier one (CHK-2).
#[apply(request!)]
pub struct WarningStore {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The files that the warning is about.
    pub files: Vec<ClientPath>,
    /// The text of the warning.
    pub note: Option<String>,
}

/// Returns a session's warning and removes it (CHK-2).
#[apply(request!)]
pub struct WarningTake {
    /// The session, by its id or label.
    pub session: SessionId,
}

/// The result of `warning/take`.
#[apply(answer!)]
pub struct WarningTaken {
    /// The warning; `null` if there was none.
    pub warning: Option<Warning>,
}

/// Removes the warnings of all sessions that are not live (CHK-2).
#[apply(request!)]
pub struct WarningCleanup {
    /// The sessions that are live.
    pub live: Vec<SessionId>,
}
