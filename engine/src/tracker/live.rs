//! What is known of a path beyond the recorded facts. Lost at a restart, which
//! is a gap.

use std::collections::BTreeMap;

use touchmark_proto::{Millis, SessionId};

use crate::input::{Found, Stamp};
use crate::ledger::record::Held;
use crate::tracker::hints::Hints;
use crate::tracker::passing::Passing;

/// What is going on with one watched path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// What it holds that is not recorded yet; changed by
    /// [`Tracker::enter`](super::Tracker::enter) alone.
    pub(super) passing: Passing,
    /// What was hinted at since the last read.
    pub hints: Hints,
    /// Its newest save, and who was told of it.
    pub save: Save,
    /// What the last read showed beside the content.
    pub seen: LastRead,
}

/// The save that a file is in, or was in last (MOD-2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Save {
    /// Which it is, from the first write to its close.
    pub episode: u64,
    /// The one that the newest version came from.
    pub of_version: u64,
    /// Sessions told in the middle of a save, and of which.
    pub told: BTreeMap<SessionId, u64>,
    /// Sessions that were shown the middle of a save, and of which; they are
    /// told once they acknowledge that.
    pub shown: BTreeMap<SessionId, u64>,
    /// The version that has used up a one-call mark; the close to come may be
    /// of the same write (ATTR-8).
    pub consumed: Option<u64>,
}

/// What the last read of a path showed, beside the content.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRead {
    /// The stat it found.
    pub stamp: Option<Stamp>,
    /// The file's modification time, where it is not the recorded one.
    pub mtime_ms: Option<Millis>,
    /// Why it cannot be read as a file.
    pub obstacle: Option<Obstacle>,
    /// Tries to read it that found it changing.
    pub retries: u32,
    /// The first look at a closed content that is looked at twice (ATTR-5).
    pub first_look: Option<FirstLook>,
}

/// The first look at a closed content that is not the declared one, or of
/// none. A read behind this fence that finds the same stat confirms it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstLook {
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
    /// What it holds that is not recorded yet.
    pub(crate) fn passing(&self) -> &Passing {
        &self.passing
    }

    /// What is held back last, which is what the path holds now.
    pub(crate) fn held_now(&self) -> Option<Held> {
        self.passing.contents().last().map(|last| last.held)
    }

    /// Whether contents are held back (ATTR-5).
    pub(crate) fn is_held_back(&self) -> bool {
        !self.passing.contents().is_empty()
    }

    /// Whether forgetting it loses nothing.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.passing, Passing::Settled)
            && self.hints.is_idle()
            && self.save.is_idle()
            && self.seen.obstacle.is_none()
            && self.seen.mtime_ms.is_none()
    }
}

impl Save {
    /// A session has read the file: a save told in its middle is news again.
    pub(crate) fn read_by(&mut self, session: &SessionId) {
        self.told.remove(session);
        self.shown.remove(session);
    }

    /// A version was made of it.
    pub(crate) fn versioned(&mut self) {
        self.of_version = self.episode;
        self.consumed = None;
    }

    fn is_idle(&self) -> bool {
        self.told.is_empty() && self.shown.is_empty() && self.consumed.is_none()
    }
}
