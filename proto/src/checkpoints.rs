//! Requests about checkpoints, and the warnings that come of them (CHK).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sessions::Warning;
use crate::{Author, ClientPath, Clock, Millis, RelPath, SessionId};

/// Remembers this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointCreate {
    /// Whose.
    pub session: SessionId,
    /// A name for people.
    pub label: Option<String>,
    /// The agent's own name of the message it belongs to.
    pub message: Option<String>,
    /// The agent's step.
    pub step: Option<u64>,
}

/// A moment remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointCreated {
    /// Its name.
    pub checkpoint: String,
    /// The moment, in the order of all facts.
    pub clock: Clock,
    /// The moment, by the clock on the wall.
    pub time: Millis,
}

/// The checkpoints of a session, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointList {
    /// Whose.
    pub session: SessionId,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRow {
    /// Its name.
    pub checkpoint: String,
    /// The moment, in the order of all facts.
    pub clock: Clock,
    /// The moment, by the clock on the wall.
    pub time: Millis,
    /// A name for people.
    pub label: Option<String>,
    /// The agent's own name of the message it belongs to.
    pub message: Option<String>,
    /// The agent's step.
    pub step: Option<u64>,
}

/// Checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointRows {
    /// The oldest first.
    pub checkpoints: Vec<CheckpointRow>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}

/// Forgets a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointDelete {
    /// Whose.
    pub session: SessionId,
    /// Which.
    pub checkpoint: String,
}

/// A file operation of a message that was deleted with the restoring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeletedOperation {
    /// What file.
    pub path: ClientPath,
    /// Any tool's name; reads alone (`read_tool`, `read_file`,
    /// `file_mentioned`) do not count.
    pub operation: String,
    /// When.
    pub time: Option<Millis>,
}

/// Which files were edited after a moment (CHK-1)? Exactly one of
/// `checkpoint`, `clock` and `time` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointDetect {
    /// Whose.
    pub session: SessionId,
    /// The moment, as a checkpoint of the session's.
    pub checkpoint: Option<String>,
    /// The moment, in the order of all facts.
    pub clock: Option<Clock>,
    /// The moment, by the clock on the wall.
    pub time: Option<Millis>,
    /// Only these.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// File operations of the deleted messages.
    #[serde(default)]
    pub deleted: Vec<DeletedOperation>,
    /// Keep a result that is not empty as the session's warning (CHK-2).
    #[serde(default)]
    pub store_warning: bool,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// A file edited after a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedFile {
    /// Which.
    pub path: RelPath,
    /// Who, in the order of their first edit; empty where only a deleted
    /// message speaks of it.
    pub edited_by: Vec<Author>,
    /// When first.
    pub first_edit: Option<Millis>,
    /// When last.
    pub last_edit: Option<Millis>,
    /// How many versions.
    pub versions: u32,
    /// Whether the content differs from what it was at that moment; `null`
    /// where the path was not tracked then.
    pub differs: Option<bool>,
    /// A deleted message's operation names it.
    pub from_deleted_messages: bool,
}

/// What was edited after a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointDetected {
    /// One per path, by path.
    pub files: Vec<EditedFile>,
    /// The warning that was kept, if one was.
    pub warning: Option<Warning>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}

/// Keeps a warning for a session, in place of an earlier one (CHK-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WarningStore {
    /// Whose.
    pub session: SessionId,
    /// What it is about.
    pub files: Vec<ClientPath>,
    /// What to say.
    pub note: Option<String>,
}

/// Takes a session's warning: it is given once (CHK-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WarningTake {
    /// Whose.
    pub session: SessionId,
}

/// The warning that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WarningTaken {
    /// `null` where there was none.
    pub warning: Option<Warning>,
}

/// Removes the warnings of sessions that are not live (CHK-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WarningCleanup {
    /// The sessions that are.
    pub live: Vec<SessionId>,
}
