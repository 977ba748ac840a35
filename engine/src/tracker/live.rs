//! What the tracker has on record of a path beyond the facts. A restart loses
//! it and counts as a gap.

use std::collections::BTreeMap;
use std::sync::Arc;

use touchmark_proto::{FileMode, Millis, SessionId};

use crate::disk::{Found, Stamp};
use crate::ledger::record::Held;
use crate::tracker::hints::Hints;
use crate::tracker::passing::Passing;

/// The live state of one watched path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// The content that is not recorded yet. Only
    /// [`Tracker::enter`](super::Tracker::enter) changes it.
    pub(crate) passing: Passing,
    /// The hints since the last read.
    pub hints: Hints,
    /// The newest save, and which sessions it was reported to.
    pub save: Save,
    /// What the last read found besides the content.
    pub seen: LastRead,
}

/// The current or the last save of a file (MOD-2).
#[derive(Clone, Debug, Default)]
pub(crate) struct Save {
    /// The number of the save. A save lasts from the first write to the close.
    pub episode: u64,
    /// The number of the save that the newest version came from.
    pub of_version: u64,
    /// Sessions to which the middle of a save was reported, with the number of
    /// the save.
    pub reported: BTreeMap<SessionId, u64>,
    /// Sessions to which the middle of a save was shown, with the number of the
    /// save. It counts as reported once they acknowledge it.
    pub shown: BTreeMap<SessionId, u64>,
    /// Sessions that have read the file while they had an edit of it open, with
    /// the number of the newest save at that time.
    read: BTreeMap<SessionId, u64>,
    /// The version that has used up a one-call mark. The next close may belong
    /// to the same write (ATTR-8).
    pub consumed: Option<u64>,
}

/// What the last read of a path found besides the content.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRead {
    /// The stat that the read found.
    pub stamp: Option<Stamp>,
    /// The file's modification time, if it differs from the recorded one.
    pub mtime_ms: Option<Millis>,
    /// Its kind and permissions, where they are not the recorded ones.
    pub mode: Option<FileMode>,
    /// What the name contained while it was a symlink, if it is none any more
    /// and no version has said so yet.
    pub link: Option<Arc<[u8]>>,
    /// The reason why the path cannot be read as a file; `None` if it can.
    pub obstacle: Option<Obstacle>,
    /// The number of reads in a row during which the file changed.
    pub retries: u32,
    /// The first look at a closed content that needs a second look (ATTR-5).
    pub first_look: Option<FirstLook>,
}

/// The first look at a closed content that is not the declared one, or that is
/// empty. A read after the fence that finds the same stat confirms it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstLook {
    /// The stat that the first look found.
    pub stamp: Stamp,
    /// The fence that the second look comes after.
    pub fence: u64,
    /// When the content was first found.
    pub since: Millis,
}

/// The reason why a path cannot be read as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The file changes during each read.
    Unstable,
    /// The file may not be read. Contains the system's error message.
    Unreadable(String),
    /// The path is not a regular file. Contains its type.
    NotAFile(&'static str),
    /// A symlink leads out of the workspace.
    Outside,
}

impl Obstacle {
    /// Returns the obstacle that a read found, or `None` if it found a regular
    /// file or no file.
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
    /// Returns the content that is not recorded yet.
    pub(crate) fn passing(&self) -> &Passing {
        &self.passing
    }

    /// Returns the newest content held back, which is the current one, or
    /// `None`.
    pub(crate) fn held_now(&self) -> Option<Held> {
        self.passing.contents().last().map(|last| last.held)
    }

    /// Returns whether contents are held back (ATTR-5).
    pub(crate) fn is_held_back(&self) -> bool {
        !self.passing.contents().is_empty()
    }

    /// Returns whether this has no information, so that it can be dropped.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.passing, Passing::Settled)
            && self.hints.is_idle()
            && self.save.is_idle()
            && self.seen.obstacle.is_none()
            && self.seen.mtime_ms.is_none()
            && self.seen.mode.is_none()
            && self.seen.link.is_none()
    }
}

impl Save {
    /// Notes that a session has read the file: a save whose middle was reported
    /// counts as a change again. `editing` says whether the session has an edit
    /// of the file open.
    pub(crate) fn read_by(&mut self, session: &SessionId, editing: bool) {
        self.reported.remove(session);
        self.shown.remove(session);
        if editing {
            self.read.insert(session.clone(), self.episode);
        }
    }

    /// Returns whether nothing was written since a session read the file while
    /// it had an edit of it open.
    pub(crate) fn is_read_by(&self, session: &SessionId) -> bool {
        self.read.get(session) == Some(&self.episode)
    }

    /// Notes that a version was made of the current save.
    pub(crate) fn versioned(&mut self) {
        self.of_version = self.episode;
        self.consumed = None;
    }

    fn is_idle(&self) -> bool {
        self.reported.is_empty() && self.shown.is_empty() && self.consumed.is_none()
    }
}
