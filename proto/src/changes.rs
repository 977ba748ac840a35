//! Requests about changes by others.

use crate::{Change, ClientPath, Clock, RelPath, SessionId};

/// Lists changes and does not mark them as delivered.
#[apply(request!)]
pub struct ModifiedList {
    /// The session for which changes are listed (MOD-1); `None` lists the
    /// changes by all authors.
    pub session: Option<SessionId>,
    /// Only changes since this clock.
    pub since: Option<Clock>,
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

/// A list of changes.
#[apply(answer!)]
pub struct Changes {
    /// One change per path.
    pub changes: Vec<Change>,
    /// The current clock: the number of the newest fact.
    pub clock: Clock,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
    /// Paths that could not be read in time; `None` if there are none. The
    /// answer describes their previous state. Repeat the request later
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// When a delivery of changes takes effect.
#[apply(choice!)]
#[derive(Default)]
pub enum Ack {
    /// When the answer is sent.
    #[default]
    Implicit,
    /// When the client sends `modified/ack`.
    Explicit,
}

/// Lists the changes by others since the last time, and marks them as delivered
/// (MOD-2).
#[apply(request!)]
pub struct ModifiedTake {
    /// The session, by its id or label.
    pub session: SessionId,
    /// Whether to list the changes without marking them as delivered; default
    /// false.
    #[serde(default)]
    pub peek: bool,
    /// When the delivery takes effect; default `implicit`.
    #[serde(default)]
    pub ack: Ack,
    /// Only changes of these files; `None` means all.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash every path that the request covers first
    /// (SYNC-4); default false.
    pub verify: Option<bool>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
}

/// The result of `modified/take`.
#[apply(answer!)]
pub struct ModifiedTaken {
    /// One change per path.
    pub changes: Vec<Change>,
    /// The value to send in `modified/ack`.
    pub cursor: String,
    /// Whether there are more changes. Send `modified/take` again for them.
    pub more: Option<bool>,
    /// Whether state was lost since the previous answer (DUR-2).
    pub reset: Option<bool>,
    /// Paths that could not be read in time; `None` if there are none. The
    /// answer describes their previous state. Repeat the request later
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Confirms that all changes up to a cursor have arrived.
#[apply(request!)]
pub struct ModifiedAck {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The cursor that `modified/take` returned.
    pub cursor: String,
}
