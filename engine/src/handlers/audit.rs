//! `audit`: compares all contents on record with the disk.

use std::collections::BTreeMap;

use touchmark_proto::daemon::{Audited, Difference, Holds};
use touchmark_proto::{RelPath, Reply, RequestId};

use crate::disk::{Found, ReadOutcome};
use crate::parts::Core;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::view::{Trouble, View};

impl Core {
    /// Runs an audit. After a first fence it notes the contents on record and
    /// orders all reads. After a second fence it compares. Paths with a hint in
    /// between are no differences, since the record would have followed.
    pub(crate) fn audit(&mut self, request: RequestId, pending: &Pending) -> Answered {
        let Some(audit) = self.audits.of(request) else {
            let view = self.base.view();
            let believed: BTreeMap<RelPath, Holds> = view
                .state
                .paths
                .keys()
                .filter_map(|path| Some((path.clone(), view.believed(path)?)))
                .collect();
            let paths: Vec<RelPath> = believed.keys().cloned().collect();
            self.audits.begin(request, believed);
            return if paths.is_empty() {
                Err(Stop::Fence.into())
            } else {
                Err(Stop::Read(paths, false).into())
            };
        };
        if !audit.read {
            audit.read = true;
            return Err(Stop::Fence.into());
        }
        let differences: Vec<Difference> = audit
            .believed
            .iter()
            .filter(|(path, _)| !audit.hinted.contains(*path))
            .filter_map(|(path, believed)| {
                let disk = holds(pending.reads.found.get(path)?)?;
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
}

impl View<'_> {
    /// Returns the content on record of a path, or `None` while the path is
    /// known to change.
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

/// Returns what a read found, or `None` if the file changed during the read.
fn holds(outcome: &ReadOutcome) -> Option<Holds> {
    Some(match &outcome.found {
        Found::Absent | Found::NotAFile { .. } => Holds::Absent,
        Found::File(content) => Holds::File(content.hash),
        Found::Unreadable { .. } | Found::Outside => Holds::Unreadable,
        Found::Unstable { .. } => return None,
    })
}
