//! Stored contents: those still in memory, and the table.
//!
//! A content is compressed against the one that it replaced, which the
//! version's fact names ([`Said`]). A content against which others are
//! compressed is removed only after those were compressed again (KEEP-1). The
//! contents of agents' changes, of reported losses and of checkpoints are
//! pinned (KEEP-2).

mod packed;
mod pins;
mod removal;
mod rows;
mod spool;
mod sums;
mod table;
mod waiting;

use touchmark_engine::Fact;
use touchmark_proto::{AuthorKind, Evidence, Hash, Millis, SessionId};

pub(super) use packed::{Kept, read};
pub(super) use rows::secrets;
pub(super) use spool::Spool;
pub(super) use table::{Asked, Table};
pub(super) use waiting::Waiting;

/// Why a content is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It is a secret, by its path or its shape (`contents.exclude`).
    Excluded,
    /// It is larger than `contents.file`.
    TooLarge,
    /// It was removed for the budget, was forgotten or damaged, or was never
    /// read.
    NoLongerKept,
}

impl WhyNot {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::TooLarge => "tooLarge",
            Self::NoLongerKept => "noLongerKept",
        }
    }
}

/// How much content is stored, for `status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Compressed bytes, as stored.
    pub bytes: u64,
    /// Uncompressed bytes.
    pub unpacked: u64,
    /// Compressed bytes of the pinned contents.
    pub pinned: u64,
    /// All contents of versions since then are stored, except those that are
    /// never stored. `None` if none was ever removed.
    pub since: Option<Millis>,
}

/// The contents that a session's checkpoint names.
#[derive(Debug)]
pub struct CheckpointContents {
    /// The session.
    pub session: SessionId,
    /// The checkpoint's number.
    pub checkpoint: u64,
    /// The number of the session's oldest checkpoint that pins contents.
    pub oldest: u64,
    /// When the checkpoint was made.
    pub time: Millis,
    /// The contents of the session's tracked files at that time.
    pub hashes: Vec<Hash>,
}

/// What a fact says about contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A file has this content.
    Holds {
        hash: Option<Hash>,
        /// The content that it replaced.
        before: Option<Hash>,
        /// An agent made the change.
        agent: bool,
    },
    /// This version was reported as lost.
    Lost { version: u64 },
    /// This session was forgotten.
    Forgotten { session: i64 },
}

impl Said {
    /// Returns what a fact says, or `None` if it does not concern contents.
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
}

/// Returns the contents before and after a change that an undo needs: of what
/// agents changed, and of what undos and redos wrote or an editor has reported.
fn needed(fact: &Fact) -> impl Iterator<Item = Hash> {
    let version = match fact {
        Fact::Version(version) => Some(version),
        _ => None,
    };
    let version = version.filter(|version| {
        version.author.kind == AuthorKind::Agent || version.evidence == Evidence::Editor
    });
    let both = version.map(|version| [version.before, version.held.hash]);
    both.into_iter().flatten().flatten()
}

/// What a fact says about contents, with the fact's number and time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) n: u64,
    pub(super) time: Millis,
    pub(super) said: Said,
}
