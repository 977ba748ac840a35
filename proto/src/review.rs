//! Requests about what agents have changed and nobody has looked at (REV).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Author, ClientPath, LineRange, Millis, RelPath, SessionId};

/// What did agents change that nobody has kept or undone yet?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewList {
    /// Only what this session changed, its sub-agents with it.
    pub session: Option<SessionId>,
    /// Only in these files, or below these directories; everywhere unless told.
    pub paths: Option<Vec<ClientPath>>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
}

/// The queue, by file and place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewHunks {
    /// Each change.
    pub hunks: Vec<ReviewHunk>,
    /// There are more; `None` where these are all.
    pub more: Option<bool>,
}

/// Lines that lie beside one another and were changed by agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewHunk {
    /// Its name, which another change of the file does not alter, unless of
    /// these lines.
    pub id: String,
    /// In which file.
    pub path: RelPath,
    /// Where it is in what the file holds now; an empty place is the line
    /// before it.
    pub lines: LineRange,
    /// What would stand there without it; bytes that are no UTF-8 are replaced.
    pub before: String,
    /// What stands there now, likewise.
    pub after: String,
    /// The file was made by it; `None` otherwise.
    pub created: Option<bool>,
    /// The file was deleted by it; `None` otherwise.
    pub deleted: Option<bool>,
    /// Who changed these lines.
    pub authors: Vec<Author>,
    /// When the newest of these changes was seen.
    pub time: Millis,
}

/// A change of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewNamed {
    /// In which file.
    pub path: ClientPath,
    /// Its name, as `review/list` tells it.
    pub id: String,
}

/// These were looked at and stay: they are in the queue no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewKeep {
    /// Which.
    pub hunks: Vec<ReviewNamed>,
}

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewKept {
    /// How many.
    pub kept: u32,
}

/// These were looked at and go. What they were is in `undo/list` from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewUndo {
    /// Which.
    pub hunks: Vec<ReviewNamed>,
}
