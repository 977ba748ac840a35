//! Requests about the models a session used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, SessionId};

/// Remembers which model answers from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelRecord {
    /// Whose.
    pub session: SessionId,
    /// The model.
    pub model_id: String,
    /// Who serves it.
    pub provider_id: String,
    /// The agent's mode.
    pub mode: String,
    /// The message it answered: the same message counts once.
    pub message_id: Option<String>,
}

/// Whether that was news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRecorded {
    /// False for a repeat of the last entry, or of a message.
    pub recorded: bool,
}

/// The models of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelList {
    /// Whose.
    pub session: SessionId,
    /// At most this many (LIM-2).
    pub limit: Option<u32>,
    /// Where the last answer stopped.
    pub cursor: Option<String>,
}

/// A model in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelEntry {
    /// From when on.
    pub time: Millis,
    /// The model.
    pub model_id: String,
    /// Who serves it.
    pub provider_id: String,
    /// The agent's mode.
    pub mode: String,
}

/// Models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelEntries {
    /// The oldest first.
    pub entries: Vec<ModelEntry>,
    /// There is more: ask again with this cursor.
    pub more: Option<String>,
}
