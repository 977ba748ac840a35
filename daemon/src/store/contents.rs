//! Kept contents: those that wait in memory, and the table.
//!
//! A content is compressed against the one that it took the place of, which
//! the version's fact names ([`Said`]). What others rest on goes only after
//! they were packed anew (KEEP-1). What changes by agents, told losses and
//! checkpoints name is pinned (KEEP-2).

mod packed;
mod pins;
mod removal;
mod sums;
mod table;
mod waiting;

use touchmark_engine::Fact;
use touchmark_proto::{AuthorKind, Hash, Millis, SessionId};

pub(super) use packed::{Kept, read};
pub(super) use table::{Asked, Table, secrets};
pub(super) use waiting::Waiting;

/// Why a content cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It is a secret, by its name or its shape (`contents.exclude`).
    Excluded,
    /// It is larger than `contents.file`.
    TooLarge,
    /// It made room for others, was forgotten or damaged, or was never read.
    NoLongerKept,
}

impl WhyNot {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::TooLarge => "tooLarge",
            Self::NoLongerKept => "noLongerKept",
        }
    }
}

/// How much is kept, for `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes as they are stored.
    pub bytes: u64,
    /// Bytes as they were.
    pub unpacked: u64,
    /// Stored bytes of what is pinned.
    pub pinned: u64,
    /// Contents of versions since then are all there, but for those that are
    /// never kept; `None` if none ever had to go.
    pub since: Option<Millis>,
}

/// What a session's checkpoint names.
#[derive(Debug)]
pub struct CheckpointContents {
    /// Whose.
    pub session: SessionId,
    /// Its number.
    pub checkpoint: u64,
    /// The oldest of the session's that pins.
    pub oldest: u64,
    /// When.
    pub time: Millis,
    /// What the files that the session holds held.
    pub hashes: Vec<Hash>,
}

/// What a fact says of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A file holds a content.
    Holds {
        hash: Option<Hash>,
        /// What it took the place of.
        before: Option<Hash>,
        /// An agent changed it.
        agent: bool,
    },
    /// This version was told as lost.
    Lost { version: u64 },
    /// This session was forgotten.
    Forgotten { session: i64 },
}

impl Said {
    /// `None` where a fact says nothing of contents.
    pub(super) fn by(fact: &Fact) -> Option<Self> {
        match fact {
            Fact::Baseline { held, .. } => Some(Self::Holds {
                hash: held.hash,
                before: None,
                agent: false,
            }),
            Fact::Version(version) => Some(Self::Holds {
                hash: version.held.hash,
                before: version.before,
                agent: version.author.kind == AuthorKind::Agent,
            }),
            Fact::Lost { version, .. } => Some(Self::Lost { version: *version }),
            Fact::SessionForgotten { session } => Some(Self::Forgotten {
                session: pins::key(session),
            }),
            _ => None,
        }
    }

    /// What an undo of it needs.
    fn needed(self) -> impl Iterator<Item = Hash> {
        let (before, hash) = match self {
            Self::Holds {
                hash,
                before,
                agent: true,
            } => (before, hash),
            _ => (None, None),
        };
        before.into_iter().chain(hash)
    }
}

/// What was said, when, and by which fact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) n: u64,
    pub(super) time: Millis,
    pub(super) said: Said,
}
