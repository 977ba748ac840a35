//! What is known of a path beyond the recorded facts: hints not yet read,
//! writers not yet done. Lost at a restart, which is a gap.

use std::collections::BTreeMap;

use touchmark_proto::{Hash, Millis, RelPath, SessionId};

use crate::input::{Found, Stamp};
use crate::ledger::record::Held;
use crate::tracker::reading::WRITE_DELAY;

/// The passing state of one watched path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// Somebody wrote and has not closed yet.
    pub writing: bool,
    /// Since when; 0 if nothing but its name has come yet.
    pub writing_since: Millis,
    /// Somebody wrote since the last close that was counted.
    pub wrote: bool,
    /// Closed changes since the last read.
    pub closes: u32,
    /// Those of them that ended a write, not a mere open for writing.
    pub written_closes: u32,
    /// The first read ordered after the first of them was hinted at: an
    /// earlier one may have found the middle of the write that it ended.
    pub closed_from: u64,
    /// Which save this is, from the first write to its close (MOD-2).
    pub episode: u64,
    /// The save that the newest version came from.
    pub version_episode: u64,
    /// Sessions told in the middle of a save, and of which.
    pub told: BTreeMap<SessionId, u64>,
    /// Sessions that were shown the middle of a save, and of which; they are
    /// told once they acknowledge that.
    pub shown: BTreeMap<SessionId, u64>,
    /// Contents found while an edit is open whose writer may not be done, or
    /// a file found empty that is looked at once more; the last is what it
    /// holds now (ATTR-5).
    pub held_back: Vec<HeldBack>,
    /// The stat of a closed content that is not the declared one, or of none,
    /// since it was first found: until a read behind this fence finds it
    /// unchanged, it may be that of the next writer, whose events have not
    /// come yet (ATTR-5).
    pub unconfirmed: Option<Unconfirmed>,
    /// A content that nobody has closed yet, and the beginnings it has: half a
    /// save, unless somebody asks or it stays (ATTR-12).
    pub tentative: Option<(Held, Vec<(u64, Hash)>)>,
    /// When an absence, a copy or a tentative content is recorded although
    /// nobody asks.
    pub settle_at: Millis,
    /// It is gone, and may be back in a moment (ATTR-12).
    pub absent: bool,
    /// The read that says whether an absence or a copy has lasted until it is
    /// recorded.
    pub last_look: Option<u64>,
    /// A rename brought it here from that tracked name; not recorded yet.
    pub copy_of: Option<RelPath>,
    /// What the copy holds.
    pub copy: Option<Held>,
    /// Nobody watched for a while (ATTR-13).
    pub gap: bool,
    /// Why it cannot be read as a file.
    pub obstacle: Option<Obstacle>,
    /// The stat of the last read.
    pub stamp: Option<Stamp>,
    /// The file's modification time at the last read.
    pub mtime_ms: Option<Millis>,
    /// A one-call mark was consumed by this version (ATTR-8).
    pub consumed: Option<u64>,
    /// Tries to read it that found it changing.
    pub retries: u32,
}

/// A content that is no version yet (ATTR-5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldBack {
    /// What was found.
    pub held: Held,
    /// Somebody has closed the file before it was read: what is not the
    /// beginning of the next content was whole.
    pub closed: bool,
}

/// A closed content that is to be looked at once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unconfirmed {
    /// The stat it was found with.
    pub stamp: Stamp,
    /// The fence that the second look stands behind.
    pub fence: u64,
    /// When it was first found.
    pub since: Millis,
}

/// Why a path cannot be read as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It keeps changing while it is read.
    Unstable,
    /// It may not be read: the system's words.
    Unreadable(String),
    /// It is something else.
    NotAFile(&'static str),
    /// A symlink leads out of the workspace.
    Outside,
}

impl Obstacle {
    /// What a read that found no regular file says of the path; `None` where
    /// it is there to be read, or is not there.
    pub(crate) fn of(found: &Found) -> Option<Self> {
        match found {
            Found::Unreadable { cause } => Some(Self::Unreadable(cause.clone())),
            Found::NotAFile { file_type } => Some(Self::NotAFile(file_type)),
            Found::Outside => Some(Self::Outside),
            Found::Unstable { .. } => Some(Self::Unstable),
            Found::Absent | Found::File(_) => None,
        }
    }
}

impl Live {
    /// What is held back last, which is what the path holds now.
    pub(crate) fn held_now(&self) -> Option<Held> {
        self.held_back.last().map(|last| last.held)
    }

    /// An absence is held back: whoever has the file marked may be about to
    /// make it anew (ATTR-5).
    pub(crate) fn awaits_return(&self) -> bool {
        self.held_now() == Some(Held::ABSENT)
    }

    /// Until when its content may be the middle of a save: somebody writes in
    /// it who has not closed it, or whose close is still to be read, and began
    /// a moment ago (ATTR-12).
    pub(crate) fn mid_save(&self) -> Option<Millis> {
        (self.writing || self.closes > 0).then(|| self.writing_since + WRITE_DELAY)
    }

    /// Whether forgetting it loses nothing.
    pub(crate) fn is_idle(&self) -> bool {
        !self.writing
            && !self.wrote
            && self.closes == 0
            && self.told.is_empty()
            && self.shown.is_empty()
            && self.held_back.is_empty()
            && !self.absent
            && self.tentative.is_none()
            && self.copy_of.is_none()
            && !self.gap
            && self.obstacle.is_none()
            && self.consumed.is_none()
            && self.mtime_ms.is_none()
    }
}
