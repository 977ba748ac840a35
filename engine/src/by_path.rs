//! Collections by path whose order has no meaning. A lookup in a tree of
//! 100,000 names compares a dozen of them, each in another place of memory; a
//! hash map does not.
//!
//! The hash is the same in every process, so that equal inputs have equal
//! outputs. Code sorts the paths before it iterates, so that files are watched,
//! read and reported in the order of their names.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use touchmark_proto::RelPath;

/// A map from paths to values.
pub(crate) type ByPath<V> = HashMap<RelPath, V, FixedState>;

/// A set of paths.
pub(crate) type Paths = HashSet<RelPath, FixedState>;

/// Returns the paths in the order of their names.
pub(crate) fn sorted(paths: impl IntoIterator<Item = RelPath>) -> Vec<RelPath> {
    let mut paths: Vec<RelPath> = paths.into_iter().collect();
    paths.sort_unstable();
    paths
}
