//! Audits in progress.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::daemon::Holds;
use touchmark_proto::{RelPath, RequestId};

use crate::view::View;

/// The audits in progress. Hints are recorded for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audits(BTreeMap<RequestId, Audit>);

/// An audit in progress.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    /// The content on record of each path, after the first fence.
    pub believed: BTreeMap<RelPath, Holds>,
    /// Paths with a hint since then. The watcher saw these changes too, so they
    /// are no differences.
    pub hinted: BTreeSet<RelPath>,
    /// The reads are done, and the second fence is pending.
    pub read: bool,
}

impl Audits {
    /// Begins the audit of a request.
    pub(crate) fn begin(&mut self, request: RequestId, believed: BTreeMap<RelPath, Holds>) {
        let audit = Audit {
            read: believed.is_empty(),
            believed,
            hinted: BTreeSet::new(),
        };
        self.0.insert(request, audit);
    }

    /// Returns the audit of a request, or `None` if it has not begun.
    pub(crate) fn of(&mut self, request: RequestId) -> Option<&mut Audit> {
        self.0.get_mut(&request)
    }

    /// Forgets the audit of a request, if there is one.
    pub(crate) fn end(&mut self, request: RequestId) {
        self.0.remove(&request);
    }

    /// Notes in all audits that a path may change, or may have changed.
    pub(crate) fn hinted(&mut self, path: &RelPath, view: View<'_>) {
        if self.0.is_empty() {
            return;
        }
        let path = view.file_of(path);
        for audit in self.0.values_mut() {
            if audit.believed.contains_key(&path) {
                audit.hinted.insert(path.clone());
            }
        }
    }
}
