//! Notifications to subscribers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::commands::CommandRow;
use crate::files::Verdict;
use crate::{Clock, FileState, LineCounts, LineRange, RelPath, SessionId, Version};

/// How an edit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EditPhase {
    /// It was declared.
    Begun,
    /// The writes are done.
    Committed,
    /// Nothing of it counts.
    Aborted,
    /// Its deadline or its connection ended it.
    Lapsed,
}

/// How a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionPhase {
    /// It began or came back.
    Opened,
    /// It ended.
    Closed,
    /// What it knew was removed.
    Forgotten,
}

/// What happened. In JSON the variant is the field `type` and its fields
/// stand beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Happening {
    /// A file has a new version, or an earlier one was corrected.
    Version {
        /// The version.
        version: Version,
        /// Lines against the version before, where both texts are at hand.
        lines: Option<LineCounts>,
    },
    /// A session's copy went out of date.
    Stale {
        /// Whose.
        session: SessionId,
        /// Which.
        file: FileState,
        /// The session's label (SES-2).
        label: Option<String>,
    },
    /// A session read a file.
    Read {
        /// Who.
        session: SessionId,
        /// What.
        path: RelPath,
        /// What the read was.
        verdict: Verdict,
        /// Which lines; the whole file if absent.
        range: Option<LineRange>,
        /// The session's label (SES-2).
        label: Option<String>,
    },
    /// An edit began or ended.
    Edit {
        /// Whose.
        session: SessionId,
        /// Its name.
        edit: String,
        /// How it goes.
        phase: EditPhase,
        /// Its paths.
        paths: Vec<RelPath>,
        /// The session's label (SES-2).
        label: Option<String>,
    },
    /// A session began or ended.
    Session {
        /// Which.
        session: SessionId,
        /// How it goes.
        phase: SessionPhase,
        /// The session's label (SES-2).
        label: Option<String>,
    },
    /// Bytes that would have lost their name were kept.
    Recovered {
        /// Of which file.
        path: RelPath,
        /// Where: an absolute path.
        kept: String,
    },
    /// Coverage is reduced.
    Degraded {
        /// What it concerns; everything if absent.
        path: Option<RelPath>,
        /// Why.
        cause: String,
    },
    /// The kernel's queue overflowed: everything tracked is compared with the
    /// disk.
    Overflow {},
    /// A command's window ended (ATTR-6).
    Command {
        /// The command.
        command: CommandRow,
    },
}

impl Happening {
    /// The name that `subscribe`'s `kinds` selects it by.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Version { .. } => "version",
            Self::Stale { .. } => "stale",
            Self::Read { .. } => "read",
            Self::Edit { .. } => "edit",
            Self::Session { .. } => "session",
            Self::Recovered { .. } => "recovered",
            Self::Degraded { .. } => "degraded",
            Self::Overflow {} => "overflow",
            Self::Command { .. } => "command",
        }
    }

    /// All names of [`Happening::kind`].
    pub const KINDS: &'static [&'static str] = &[
        "version",
        "stale",
        "read",
        "edit",
        "session",
        "recovered",
        "degraded",
        "overflow",
        "command",
    ];
}

/// One notification of one subscription. In JSON: `{"jsonrpc": "2.0",
/// "method": "event", "params": {subscription, clock, type, ...}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The number that `subscribe` answered.
    pub subscription: u64,
    /// The clock of the fact.
    pub clock: Clock,
    /// What happened.
    pub happening: Happening,
}
