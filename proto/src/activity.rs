//! What sessions did, over time.

use macro_rules_attribute::macro_rules_derive;
use serde::{Deserialize, Serialize};

use crate::at::At;
use crate::files::Verdict;
use crate::{Clock, Millis, RelPath, SessionId};

/// Lists what sessions did that is no version: reads, refused edits, and
/// versions that they overwrote unseen. Newest first. The versions themselves
/// are in `file/log`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
#[macro_rules_derive(New!)]
pub struct ActivityList {
    /// Only this session, by its id or label, or the beginning of either;
    /// `None` means all.
    pub session: Option<SessionId>,
    /// Only what was done after this moment: a time, a clock or a checkpoint.
    pub since: Option<At>,
    /// Only what was done before this moment, or at it.
    pub until: Option<At>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// Only what is older than this clock; `None` starts at the newest.
    pub before: Option<Clock>,
}

/// What a session did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum ActivityKind {
    /// The session read a file.
    Read,
    /// An edit was refused since the session's copy was out of date.
    Stale,
    /// An edit was refused since the session had not read the file.
    NotRead,
    /// A guarded write found bytes which the session had not seen.
    Conflict,
    /// The session wrote over a version that it had not seen (ATTR-10).
    Overwrote,
}

/// One thing that a session did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Activity {
    /// The clock of the fact.
    pub clock: Clock,
    /// When it was recorded.
    pub time: Millis,
    /// The session.
    pub session: SessionId,
    /// The session's label; `None` if it has none (SES-2).
    pub label: Option<String>,
    /// What the session did.
    pub kind: ActivityKind,
    /// The file. Of a refused edit the first one that it was refused for;
    /// `None` if that is not recorded.
    pub path: Option<RelPath>,
    /// How a read relates to earlier ones; `None` for what is no read.
    pub verdict: Option<Verdict>,
    /// The version that was overwritten; `None` if none was.
    pub lost: Option<Clock>,
}

/// A list of what sessions did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct Activities {
    /// The rows, newest first.
    pub rows: Vec<Activity>,
    /// Since when everything is in the list: earlier rows are dropped when the
    /// daemon stores its state, and when it ends.
    pub complete_since: Millis,
    /// The value of `before` for the next request; `None` if there are no more
    /// rows.
    pub more: Option<Clock>,
}
