//! Collections by path in which the order of names has no meaning. A look into
//! a tree of 100,000 names compares a dozen of them, each in a place of its
//! own.
//!
//! The hash is the same in every process, so that equal inputs have equal
//! outputs. What is gone through is sorted before, so that the order in which
//! files are watched, read and told is theirs.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use touchmark_proto::RelPath;

/// A value for each of some paths.
pub(crate) type ByPath<V> = HashMap<RelPath, V, FixedState>;

/// Some paths.
pub(crate) type Paths = HashSet<RelPath, FixedState>;

/// Those paths in the order of their names.
pub(crate) fn sorted(paths: impl IntoIterator<Item = RelPath>) -> Vec<RelPath> {
    let mut paths: Vec<RelPath> = paths.into_iter().collect();
    paths.sort_unstable();
    paths
}
