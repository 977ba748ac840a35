//! The request by which the user says who wrote a change (ATTR-18).

use crate::{ClientPath, LineRange, SessionId};

/// Says who wrote changes. Without `lines` these are changes whose author is
/// only likely, or was claimed before (UNDO-7); `command` or `paths` selects
/// them.
#[apply(request!)]
pub struct Claim {
    /// The session that wrote them; `None` for the user.
    pub session: Option<SessionId>,
    /// Only changes while this command ran (`c5`); `None` means any.
    pub command: Option<String>,
    /// Only these files, and files below these directories; `None` means all.
    pub paths: Option<Vec<ClientPath>>,
    /// These lines of the current content of the one file in `paths`, no matter
    /// who wrote them; `None` for whole changes.
    pub lines: Option<LineRange>,
}

/// What a claim has corrected.
#[apply(answer!)]
#[derive(Copy, Default)]
pub struct Claimed {
    /// The number of versions whose author was corrected.
    pub versions: u32,
    /// The number of lines whose author was corrected.
    pub lines: u32,
}
