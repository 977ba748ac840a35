//! Requests about the models that a session used.

use crate::{Millis, SessionId};

/// Records the model that answers from now on.
#[apply(request!)]
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
#[apply(answer!)]
#[derive(Copy)]
pub struct ModelRecorded {
    /// Whether an entry was added. False if it repeats the last entry, or is
    /// for a message that is already recorded.
    pub recorded: bool,
}

/// Lists the models of a session.
#[apply(request!)]
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
#[apply(answer!)]
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
#[apply(answer!)]
pub struct ModelEntries {
    /// The entries, oldest first.
    pub entries: Vec<ModelEntry>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}
