//! What sessions did, over time.

use crate::at::At;
use crate::files::Verdict;
use crate::{Clock, Millis, RelPath, SessionId};

/// Lists what was done that is no version (HIST-7). Newest first. The versions
/// themselves are in `file/log`.
#[apply(request!)]
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
    /// Only these kinds. `None` means what sessions did to files: `read`,
    /// `stale`, `notRead`, `conflict` and `overwrote`.
    pub kinds: Option<Vec<ActivityKind>>,
}

/// What was done.
#[apply(choice!)]
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
    /// The session ran a command (SCOPE-6).
    Command,
    /// The user undid changes (UNDO-1).
    Undo,
    /// The user put back what an undo had removed.
    Redo,
    /// The user restored an earlier content of a file (HIST-4).
    Restore,
    /// The user kept changes in a review (REV-1).
    Keep,
    /// The user corrected the author of a change (ATTR-11).
    Claim,
    /// A checkpoint was created: the user gave the session a prompt, or a
    /// client created one (CHK-1).
    Prompt,
    /// Git moved `HEAD` of the repository: a commit, a checkout, a pull.
    Git,
}

impl ActivityKind {
    /// The kinds that are listed unless a request names others.
    pub const OF_FILES: &[Self] = &[
        Self::Read,
        Self::Stale,
        Self::NotRead,
        Self::Conflict,
        Self::Overwrote,
    ];

    /// The kinds that a request has to name.
    pub const OF_PEOPLE: &[Self] = &[
        Self::Command,
        Self::Undo,
        Self::Redo,
        Self::Restore,
        Self::Keep,
        Self::Claim,
        Self::Prompt,
        Self::Git,
    ];
}

/// One thing that was done.
#[apply(answer!)]
pub struct Activity {
    /// The clock of the fact. Of what took longer, the clock at its end; of what
    /// is no fact, that of the fact before it.
    pub clock: Clock,
    /// When it was recorded, or began.
    pub time: Millis,
    /// The session that did it; `None` if the user did it, or if that is not
    /// known (`doubt`).
    pub session: Option<SessionId>,
    /// The session's label; `None` if it has none (SES-2).
    pub label: Option<String>,
    /// What was done.
    pub kind: ActivityKind,
    /// The file. Of a refused edit the first one that it was refused for;
    /// `None` if that is not recorded, or if there are several.
    pub path: Option<RelPath>,
    /// How a read relates to earlier ones; `None` for what is no read.
    pub verdict: Option<Verdict>,
    /// The version that was overwritten; `None` if none was.
    pub lost: Option<Clock>,
    /// The name by which other requests refer to it: a command (`c5`), an undo
    /// or redo (`u1`), a checkpoint (`k2`). `None` for what has none.
    pub name: Option<String>,
    /// What was done, for people, in one line: the command line, what was
    /// undone, the beginning of the prompt. `None` if it is not known.
    pub text: Option<String>,
    /// The number of files that it changed. `None` if it is not counted here;
    /// the versions of a command name it.
    pub files: Option<u32>,
    /// The files that it changed, at most 200. `None` if it is not counted here.
    pub paths: Option<Vec<RelPath>>,
    /// The clock when it began; its versions are later than this clock, and no
    /// later than `clock`. `None` if it took no time.
    pub begun: Option<Clock>,
    /// Whether the user or a session did it: a command of one ran at that time.
    /// `None` means no.
    pub doubt: Option<bool>,
}

/// A list of what was done.
#[apply(answer!)]
pub struct Activities {
    /// The rows, newest first.
    pub rows: Vec<Activity>,
    /// Since when everything that sessions did to files is in the list: earlier
    /// rows are dropped when the daemon stores its state, and when it ends.
    pub complete_since: Millis,
    /// The value of `before` for the next request; `None` if there are no more
    /// rows.
    pub more: Option<Clock>,
}
