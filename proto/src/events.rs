//! Notifications to subscribers.

use crate::commands::CommandRow;
use crate::files::Verdict;
use crate::{Clock, FileState, LineCounts, LineRange, RelPath, SessionId, Version};

/// The state of an edit.
#[apply(choice!)]
pub enum EditPhase {
    /// The edit began.
    Begun,
    /// The edit was committed: its writes are done.
    Committed,
    /// The edit was aborted: none of its writes is the session's.
    Aborted,
    /// The edit was ended by its deadline or with its connection.
    Lapsed,
}

/// The state of a session.
#[apply(choice!)]
pub enum SessionPhase {
    /// The session was opened or reopened.
    Opened,
    /// The session was closed.
    Closed,
    /// What the session knew was removed.
    Forgotten,
}

/// An event. In JSON the variant is the field `type`, and the variant's fields
/// are next to it.
#[apply(answer!)]
#[serde(rename_all_fields = "camelCase")]
pub enum Happening {
    /// A file has a new version, or an earlier one was corrected.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Version {
        /// The version.
        version: Version,
        /// Lines added and removed since the previous version; `None` if a text
        /// is not available.
        lines: Option<LineCounts>,
    },
    /// A session's copy of a file became out of date.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Stale {
        /// The session.
        session: SessionId,
        /// The state of the session's copy.
        file: FileState,
        /// The session's label; `None` if it has none (SES-2).
        label: Option<String>,
    },
    /// A session read a file.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Read {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// How the read relates to earlier ones.
        verdict: Verdict,
        /// The lines; `None` means the whole file.
        range: Option<LineRange>,
        /// The session's label; `None` if it has none (SES-2).
        label: Option<String>,
    },
    /// An edit began or ended.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Edit {
        /// The session of the edit.
        session: SessionId,
        /// The edit's id.
        edit: String,
        /// The state of the edit.
        phase: EditPhase,
        /// The paths of the edit.
        paths: Vec<RelPath>,
        /// The session's label; `None` if it has none (SES-2).
        label: Option<String>,
    },
    /// A session was opened, closed or forgotten.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Session {
        /// The session.
        session: SessionId,
        /// The state of the session.
        phase: SessionPhase,
        /// The session's label; `None` if it has none (SES-2).
        label: Option<String>,
    },
    /// Bytes that a guarded write would have destroyed were kept for recovery.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Recovered {
        /// The path of the file that had the kept bytes.
        path: RelPath,
        /// The absolute path of the copy.
        kept: String,
    },
    /// touchmark sees less than it should from now on.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Degraded {
        /// The file or directory that is affected; `None` means everything.
        path: Option<RelPath>,
        /// The cause, as a sentence for people.
        cause: String,
    },
    /// The system's queue of events overflowed. Everything tracked is compared
    /// with the disk.
    Overflow {},
    /// A command's window ended (ATTR-6).
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Command {
        /// The command.
        command: CommandRow,
    },
    /// The user undid changes, or put them back (UNDO-1): one event for each
    /// session with changes in it.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Undone {
        /// The session whose changes they are; `None` for changes of no session.
        session: Option<SessionId>,
        /// The undo's name, such as `u2`. Of a redo, that of the undo which it
        /// reverts.
        undo: String,
        /// True if it was a redo; else `None`.
        redo: Option<bool>,
        /// The number of files that were written, removed or renamed.
        files: u32,
        /// The session's label; `None` if it has none (SES-2).
        label: Option<String>,
    },
}

impl Happening {
    /// Returns the name of the event's kind, which `kinds` of `subscribe`
    /// selects.
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
            Self::Undone { .. } => "undone",
        }
    }

    /// All names that [`Happening::kind`] returns.
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
        "undone",
    ];
}

/// A notification of one subscription. In JSON: `{"jsonrpc": "2.0", "method":
/// "event", "params": {subscription, clock, type, ...}}`.
#[apply(answer!)]
pub struct Event {
    /// The number of the subscription, as `subscribe` returned it.
    pub subscription: u64,
    /// The clock of the fact that the event reports.
    pub clock: Clock,
    /// The event.
    pub happening: Happening,
}
