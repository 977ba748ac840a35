//! The scope of a request: the files that its answer covers. After its fence,
//! the request waits for reads of these files and of no others (SYNC-1).

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath, RequestId, SessionId};

use super::pending::{Ask, Pending, Stage};
use crate::by_path::sorted;
use crate::engine::Engine;
use crate::timers::Timer;
use crate::view::View;

/// How long a list waits without any of its reads arriving, in milliseconds.
/// Files that were not read by then are `pending` in the answer.
pub(crate) const PATIENCE: Millis = 1_000;

/// The files that an answer covers.
pub(crate) enum Scope {
    /// The whole workspace.
    Everything,
    /// These paths only.
    Paths(Vec<RelPath>),
    /// The files that a session tracks.
    Session(SessionId),
}

impl Scope {
    /// Returns whether the answer covers files that the request does not name.
    /// Such an answer leaves out files that cannot be read in time.
    pub(crate) fn is_list(&self) -> bool {
        !matches!(self, Self::Paths(_))
    }
}

impl Engine {
    /// Handles a fence that a request waited for: orders the reads of all paths
    /// in its scope that have hints. Requests that arrive while a file is being
    /// read share the next read of it.
    pub(crate) fn gather(&mut self, request: RequestId) {
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        let scope = self.view().scope_of(&pending.ask);
        let owed = match &scope {
            Scope::Paths(files) => {
                let names = self.view().by_all_names(files.clone()).into_iter();
                sorted(names.filter(|name| self.tracker.is_owed(name)))
            }
            _ => {
                let soon = self.soon_held(&scope);
                let concerns =
                    |path: &&RelPath| self.view().speaks_of(&scope, path) || soon.contains(*path);
                let owed = self.tracker.owed().filter(concerns);
                sorted(owed.cloned())
            }
        };
        let mid_save = owed
            .iter()
            .filter_map(|path| self.tracker.live(path)?.hints.mid_save());
        if let Some(due) = mid_save.max().filter(|due| *due > self.now) {
            self.timers.insert((due, Timer::Request(request)));
        }
        for path in owed {
            // A read that was ordered after the request's arrival is current
            // enough.
            if pending.reads.contains_key(&path) {
                continue;
            }
            if self.tracker.is_slow(&path) && scope.is_list() {
                pending.late.insert(path);
            } else {
                let ticket = self.turn().read_for_answer(&path, pending.bytes);
                pending.reads.insert(path, ticket);
            }
        }
        if scope.is_list() {
            self.be_patient(request, &mut pending);
        }
        self.pending.insert(request, pending);
    }

    /// Returns the files that a session will track once its pending requests
    /// have taken effect, which may happen before this one.
    fn soon_held(&self, scope: &Scope) -> BTreeSet<RelPath> {
        let Scope::Session(session) = scope else {
            return BTreeSet::new();
        };
        let asks = self
            .pending
            .values()
            .filter_map(|pending| match &pending.ask {
                Ask::Client(ask) if crate::requests::session(ask) == Some(session) => Some(ask),
                _ => None,
            });
        let files = asks.flat_map(|ask| self.view().paths_named(ask)).collect();
        self.view().by_all_names(files).into_iter().collect()
    }

    /// Starts the time that a list waits for its reads, if it has something to
    /// wait for.
    pub(crate) fn be_patient(&mut self, request: RequestId, pending: &mut Pending) {
        pending.since = self.now;
        let waits = !pending.reads.is_empty()
            || self.tracker.written().len() > 0
            || self.tracker.reconciliation.is_under_way();
        if waits && pending.patience.is_none() {
            let due = self.now + PATIENCE;
            pending.patience = Some(due);
            self.timers.insert((due, Timer::Request(request)));
        }
    }

    /// Answers a list that has waited too long: if nothing that it waits for
    /// has arrived meanwhile, the missing files are left out.
    pub(crate) fn lose_patience(&mut self, request: RequestId) {
        let progress = self.tracker.reconciliation.progress();
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        if pending.patience.is_none_or(|due| self.now < due) {
            return;
        }
        pending.patience = None;
        let reads = matches!(pending.stage, Stage::Fence | Stage::Reads)
            && pending
                .fence
                .is_none_or(|fence| self.tracker.fences.is_done(fence));
        let since = match &pending.blocker {
            Some(_) => pending.since.max(progress),
            None => pending.since,
        };
        let due = since + PATIENCE;
        if !reads || self.now < due {
            let due = due.max(self.now + 1);
            pending.patience = Some(due);
            self.timers.insert((due, Timer::Request(request)));
            return;
        }
        pending.impatient = true;
        let ask = pending.ask.clone();
        let mut late: Vec<RelPath> = std::mem::take(&mut pending.reads).into_keys().collect();
        let scope = self.view().scope_of(&ask);
        late.extend(
            self.tracker
                .reconciliation
                .under_way()
                .filter(|path| self.view().speaks_of(&scope, path))
                .cloned(),
        );
        for path in &late {
            self.tracker.give_up(path);
        }
        if let Some(pending) = self.pending.get_mut(&request) {
            pending.late.extend(late);
        }
    }
}

impl View<'_> {
    /// Returns the scope of a pending request.
    pub(crate) fn scope_of(&self, ask: &Ask) -> Scope {
        match ask {
            Ask::Client(ask) => self.scope_of_request(ask),
            Ask::Expire(edit) => Scope::Paths(self.paths_of_edit(*edit)),
            Ask::EndCommand(_) | Ask::WithdrawCommand(_) | Ask::CommandBegan(..) => {
                Scope::Everything
            }
            Ask::Look(path) => Scope::Paths(vec![path.clone()]),
        }
    }

    /// Returns whether a path is in a scope.
    pub(crate) fn speaks_of(&self, scope: &Scope, path: &RelPath) -> bool {
        match scope {
            Scope::Everything => true,
            Scope::Paths(paths) => paths.contains(path) || paths.contains(&self.file_of(path)),
            Scope::Session(session) => {
                let copied = self.tracker.passing(path).copy_of();
                let held = |path: &RelPath| {
                    let file = self.file_of(path);
                    self.state.knowledge(session, &file).is_some()
                };
                held(path) || copied.is_some_and(held)
            }
        }
    }

    /// Returns all names of some files, since each name is read separately
    /// (FILE-1).
    pub(super) fn by_all_names(&self, mut files: Vec<RelPath>) -> Vec<RelPath> {
        files.sort();
        files.dedup();
        if !self.has_several_names() {
            return files;
        }
        files.iter().flat_map(|file| self.names_of(file)).collect()
    }
}
