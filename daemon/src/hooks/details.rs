//! What a notice says of a change in addition to the change itself: where a file
//! went, which lines changed, and which commands ran.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::{Hash, LineRange, RelPath, SessionId};

/// Lines that a notice can show.
#[derive(Debug)]
pub(super) struct Lines {
    /// The lines with their numbers.
    pub(super) text: String,
    pub(super) ranges: Vec<LineRange>,
    /// The content that they are in.
    pub(super) hash: Hash,
    /// The content that the session saw before.
    pub(super) before: Hash,
}

/// What is known in addition to a list of changes.
#[derive(Debug, Default)]
pub(super) struct Details {
    /// The new names of files that were moved.
    pub(super) gone: BTreeMap<RelPath, RelPath>,
    /// The lines that have changed, of files with few such lines.
    pub(super) lines: BTreeMap<RelPath, Lines>,
    /// The commands with git that wrote the newest versions, with their
    /// sessions.
    pub(super) commands: BTreeMap<RelPath, (SessionId, String)>,
    /// The authors that are sub-agents of the reader.
    pub(super) children: BTreeSet<SessionId>,
    /// The reader's label.
    pub(super) label: Option<String>,
}
