//! Requests about what changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Change, ClientPath, Clock, RelPath, SessionId};

/// Lists changes without taking them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModifiedList {
    /// For this session (MOD-1); every author's if absent.
    pub session: Option<SessionId>,
    /// Everything since then.
    pub since: Option<Clock>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// Changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// One per path.
    pub changes: Vec<Change>,
    /// Now.
    pub clock: Clock,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
    /// Paths spoken of that could not be read in time: what is said of them,
    /// or not said, is of before. Ask again (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// When a delivery counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Ack {
    /// With the answer.
    #[default]
    Implicit,
    /// With `modified/ack`.
    Explicit,
}

/// Lists what others changed since, and remembers that it did (MOD-2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModifiedTake {
    /// For whom.
    pub session: SessionId,
    /// Only look.
    #[serde(default)]
    pub peek: bool,
    /// When the delivery counts.
    #[serde(default)]
    pub ack: Ack,
    /// Only these.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Answer as of now (SYNC-1); true unless told.
    pub sync: Option<bool>,
    /// Read and hash every path spoken of (SYNC-4).
    pub verify: Option<bool>,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
}

/// What was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModifiedTaken {
    /// One per path.
    pub changes: Vec<Change>,
    /// For `modified/ack`.
    pub cursor: String,
    /// There is more: take again.
    pub more: Option<bool>,
    /// The state was lost since the last answer (DUR-2).
    pub reset: Option<bool>,
    /// Paths spoken of that could not be read in time: what is said of them,
    /// or not said, is of before. Ask again (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Everything up to the cursor has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModifiedAck {
    /// Whose.
    pub session: SessionId,
    /// As `modified/take` answered it.
    pub cursor: String,
}
