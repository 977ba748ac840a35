//! `audit`: everything that is believed against the disk.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::daemon::{Audited, Difference, Holds};
use touchmark_proto::{RelPath, Reply, RequestId};

use super::done;
use crate::engine::Engine;
use crate::input::{Found, ReadOutcome};
use crate::requests::pending::{Pending, Step};
use crate::view::{Trouble, View};

/// An audit under way.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    /// What was believed, behind the first fence.
    believed: BTreeMap<RelPath, Holds>,
    /// What was hinted at since: the watcher saw the difference, too.
    hinted: BTreeSet<RelPath>,
    /// The reads are done, and another fence is waited for.
    read: bool,
}

impl Engine {
    /// Behind a fence, notes what is believed and has everything read; behind
    /// another, compares. What the watcher has seen change between the two is
    /// no difference: the belief would have followed.
    pub(crate) fn audit(&mut self, request: RequestId, pending: &mut Pending) -> Step {
        let Some(audit) = self.audits.get_mut(&request) else {
            let believed: BTreeMap<RelPath, Holds> = self
                .state
                .paths
                .keys()
                .filter_map(|path| Some((path.clone(), self.view().believed(path)?)))
                .collect();
            let paths: Vec<RelPath> = believed.keys().cloned().collect();
            let audit = Audit {
                believed,
                hinted: BTreeSet::new(),
                read: paths.is_empty(),
            };
            self.audits.insert(request, audit);
            return if paths.is_empty() {
                Step::Fence
            } else {
                Step::Read(paths, false)
            };
        };
        if !audit.read {
            audit.read = true;
            return Step::Fence;
        }
        let differences: Vec<Difference> = audit
            .believed
            .iter()
            .filter(|(path, _)| !audit.hinted.contains(*path))
            .filter_map(|(path, believed)| {
                let disk = holds(pending.found.get(path)?)?;
                (disk != *believed).then(|| Difference {
                    path: path.clone(),
                    believed: *believed,
                    disk,
                })
            })
            .collect();
        done(Reply::Audit(Audited {
            checked: audit.believed.len() as u64,
            differences,
            pending: pending.late(),
        }))
    }

    /// A path may change, or may have changed.
    pub(crate) fn note_for_audits(&mut self, path: &RelPath) {
        if self.audits.is_empty() {
            return;
        }
        let path = &self.view().file_of(path);
        for audit in self.audits.values_mut() {
            if audit.believed.contains_key(path) {
                audit.hinted.insert(path.clone());
            }
        }
    }
}

impl View<'_> {
    /// What a path is believed to hold; `None` while it is known to change.
    fn believed(&self, path: &RelPath) -> Option<Holds> {
        let now = self.current(path, None);
        Some(match (now.trouble, now.held.hash) {
            (Some(Trouble::Unstable), _) => return None,
            (Some(Trouble::Unreadable), _) => Holds::Unreadable,
            (None, Some(hash)) => Holds::File(hash),
            (None, None) => Holds::Absent,
        })
    }
}

/// What a read found; `None` if it changed under the reader.
fn holds(outcome: &ReadOutcome) -> Option<Holds> {
    Some(match &outcome.found {
        Found::Absent | Found::NotAFile { .. } => Holds::Absent,
        Found::File(content) => Holds::File(content.hash),
        Found::Unreadable { .. } | Found::Outside => Holds::Unreadable,
        Found::Unstable { .. } => return None,
    })
}
