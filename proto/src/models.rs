//! Requests about the models that a session used.

use macro_rules_attribute::macro_rules_derive;
use serde::{Deserialize, Serialize};

use crate::{Millis, SessionId};

/// Records the model that answers from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
#[macro_rules_derive(New!)]
pub struct ModelRecord {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The id of the model.
    pub model_id: String,
    /// The id of the model's provider.
    pub provider_id: String,
    /// The agent's mode.
    pub mode: String,
    /// The id of the message that the model answered. A second record for the
    /// same message is ignored.
    pub message_id: Option<String>,
}

/// The result of `model/record`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ModelRecorded {
    /// Whether an entry was added. False if it repeats the last entry, or is
    /// for a message that is already recorded.
    pub recorded: bool,
}

/// Lists the models of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
#[macro_rules_derive(New!)]
pub struct ModelList {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// A model that a session used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ModelEntry {
    /// When the session began to use the model.
    pub time: Millis,
    /// The id of the model.
    pub model_id: String,
    /// The id of the model's provider.
    pub provider_id: String,
    /// The agent's mode.
    pub mode: String,
}

/// A list of models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct ModelEntries {
    /// The entries, oldest first.
    pub entries: Vec<ModelEntry>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}
