//! The reads for a request: those that it waits for, and what they found.

use std::collections::BTreeMap;
use std::sync::Arc;

use touchmark_proto::{Hash, RelPath};

use crate::by_path::ByPath;
use crate::disk::{Content, Found, ReadOutcome};
use crate::tracker::ways::MAX_LOOKS;

/// What is read for a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Paths that have to be read for the request. They are watched only for it
    /// if nothing else watches them.
    pub borrowed: Vec<RelPath>,
    /// Whether every read that is ordered for it from now on has to return the
    /// bytes.
    pub bytes: bool,
    /// The reads that it waits for, by path, with the numbers of their orders.
    pub awaited: ByPath<u64>,
    /// How often it has waited for a read of a path because of what another
    /// name resolves to.
    for_names: ByPath<u32>,
    /// The newest result of a read for it, for each path.
    pub found: BTreeMap<RelPath, ReadOutcome>,
    /// The newest content with its bytes, for each path that was read with
    /// them.
    pub texts: BTreeMap<RelPath, (Content, Arc<[u8]>)>,
    /// The content that the first read found, if a later one found another
    /// (SEEN-1).
    pub first_hash: Option<Option<Hash>>,
}

impl Reads {
    /// Returns whether the request waits for a read of a path, or had it read.
    pub(super) fn cover(&self, path: &RelPath) -> bool {
        self.awaited.contains_key(path) || self.found.contains_key(path)
    }

    /// Takes the result of a read: one that the request waits for, or a later
    /// one of a path that it has already read.
    pub(super) fn take(&mut self, path: &RelPath, outcome: &ReadOutcome, awaited: bool) {
        if (awaited || self.found.contains_key(path))
            && let (Found::File(content), Some(bytes)) = (&outcome.found, &outcome.bytes)
        {
            let read = (*content, Arc::clone(bytes));
            self.texts.insert(path.clone(), read);
        }
        let Some(earlier) = self.found.get_mut(path) else {
            if awaited {
                self.found.insert(path.clone(), outcome.clone());
            }
            return;
        };
        if earlier.found != outcome.found {
            // The file changed after the request had arrived (SEEN-1).
            self.first_hash.get_or_insert(earlier.hash());
        }
        *earlier = outcome.clone();
    }

    /// Returns whether the request waits for a read of `name`, or had it read,
    /// and may wait for one more read of `other` because of what that resolves
    /// to.
    pub(super) fn may_wait_too(&self, name: &RelPath, other: &RelPath) -> bool {
        let waited = self.for_names.get(other);
        self.cover(name) && waited.is_none_or(|count| *count < MAX_LOOKS)
    }

    /// Waits for a read of a path as well, because of what another name
    /// resolves to.
    pub(super) fn wait_too(&mut self, path: &RelPath, ticket: u64) {
        if self.awaited.insert(path.clone(), ticket) != Some(ticket) {
            *self.for_names.entry(path.clone()).or_default() += 1;
        }
    }
}
