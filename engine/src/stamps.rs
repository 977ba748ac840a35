//! The stamps that vouch for contents over a gap: where a file's stat is what
//! it was when its content was read, and that was not within the clock tick
//! of a write, nothing was written since (SYNC-4). What is not vouched for is
//! read.
//!
//! No facts: kept beside the state in its snapshots, and worth only time.

use std::collections::BTreeMap;

use touchmark_proto::RelPath;

use crate::input::{Content, Stamp};
use crate::record::{Fact, Record};
use crate::state::State;

/// For a tracked path the stat at which the content was read that the path is
/// recorded to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(BTreeMap<RelPath, Stamp>);

impl Stamps {
    /// For each tracked path of the state, in their order.
    pub fn in_order(&self, state: &State) -> Vec<Option<Stamp>> {
        state.paths.keys().map(|path| self.of(path)).collect()
    }

    /// The opposite; nothing of what does not fit.
    pub fn of_order(stamps: Vec<Option<Stamp>>, state: &State) -> Self {
        if stamps.len() != state.paths.len() {
            return Self::default();
        }
        let paths = state.paths.keys().cloned();
        let known = paths.zip(stamps);
        Self(
            known
                .filter_map(|(path, stamp)| Some((path, stamp?)))
                .collect(),
        )
    }

    /// The stat that vouches for what a path is recorded to hold.
    pub fn of(&self, path: &RelPath) -> Option<Stamp> {
        self.0.get(path).copied()
    }

    /// A content was read that the path is recorded to hold. Says whether
    /// that is news.
    pub(crate) fn note(&mut self, path: &RelPath, content: Content) -> bool {
        if content.settled {
            self.0.insert(path.clone(), content.stamp) != Some(content.stamp)
        } else {
            self.forget(path);
            false
        }
    }

    /// Nothing vouches for what the path is recorded to hold.
    pub(crate) fn forget(&mut self, path: &RelPath) {
        self.0.remove(path);
    }

    /// What a fact says of contents was not read with these stats.
    pub(crate) fn recorded(&mut self, record: &Record) {
        match &record.fact {
            Fact::Baseline { path, .. } | Fact::CopyDropped { path } => self.forget(path),
            Fact::Version(version) => self.forget(&version.path),
            _ => {}
        }
    }
}
