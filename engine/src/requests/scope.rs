//! The scope of a request: the files that its answer covers. After its fence,
//! the request waits for reads of these files and of no others (SYNC-1).

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath, Request, RequestId, SessionId};

use super::pending::{Ask, Pending, Stage};
use super::table::{About, Use, edit_named, paths, row, session};
use super::waiting::Requests;
use crate::base::Base;
use crate::by_path::sorted;
use crate::requests::pending::{Check, Patience};
use crate::timers::Timer;
use crate::tracker::turn::Turn;
use crate::view::View;
use crate::view::names_used::NamesUsed;

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

impl Requests {
    /// Handles a fence that a request waited for: orders the reads of all paths
    /// in its scope that have hints. Requests that arrive while a file is being
    /// read share the next read of it.
    pub(crate) fn gather(&mut self, request: RequestId, base: &mut Base) {
        let Some(mut pending) = self.pending.remove(&request) else {
            return;
        };
        let view = base.view();
        let scope = view.scope_of(&pending.ask);
        let owed = match &scope {
            Scope::Paths(files) => {
                let names = view.by_all_names(files.clone()).into_iter();
                sorted(names.filter(|name| view.tracker.is_owed(name)))
            }
            _ => {
                let soon = self.soon_held(&scope, view);
                let concerns = |path: &&RelPath| view.covers(&scope, path) || soon.contains(*path);
                let owed = view.tracker.owed().filter(concerns);
                sorted(owed.cloned())
            }
        };
        let mid_save = owed
            .iter()
            .filter_map(|path| view.tracker.live(path)?.hints.mid_save());
        if let Some(due) = mid_save.max().filter(|due| *due > base.now) {
            base.timers.insert((due, Timer::Request(request)));
        }
        for path in owed {
            // A read that was ordered after the request's arrival is current
            // enough.
            if pending.reads.awaited.contains_key(&path) {
                continue;
            }
            if base.tracker.is_slow(&path) && scope.is_list() {
                pending.late.insert(path);
            } else {
                let ticket = base.turn().read_for_answer(&path, pending.reads.bytes);
                pending.reads.awaited.insert(path, ticket);
            }
        }
        if scope.is_list() {
            be_patient(request, &mut pending, &mut base.turn());
        }
        self.pending.insert(request, pending);
    }

    /// Returns the files that a session will track once its pending requests
    /// have taken effect, which may happen before this one.
    fn soon_held(&self, scope: &Scope, view: View<'_>) -> BTreeSet<RelPath> {
        let Scope::Session(of) = scope else {
            return BTreeSet::new();
        };
        let asks = self
            .pending
            .values()
            .filter_map(|pending| match &pending.ask {
                Ask::Client { ask, .. } if session(ask) == Some(of) => Some(ask),
                _ => None,
            });
        let files = asks.flat_map(|ask| view.paths_named(ask)).collect();
        view.by_all_names(files).into_iter().collect()
    }

    /// Answers a list that has waited too long: if nothing that it waits for
    /// has arrived meanwhile, the missing files are left out.
    pub(crate) fn lose_patience(&mut self, request: RequestId, base: &mut Base) {
        let Some(pending) = self.pending.get_mut(&request) else {
            return;
        };
        let now = base.now;
        let Some(check) = pending.patience.check().filter(|check| check.due <= now) else {
            return;
        };
        let reads = matches!(pending.stage, Stage::Waiting)
            && pending
                .fence
                .is_none_or(|fence| base.tracker.fences.is_done(fence));
        let since = match &pending.blocker {
            Some(_) => check.since.max(base.tracker.reconciliation.progress()),
            None => check.since,
        };
        let due = since + PATIENCE;
        if !reads || now < due {
            let due = due.max(now + 1);
            let since = check.since;
            pending.patience.schedule(Check { due, since });
            base.timers.insert((due, Timer::Request(request)));
            return;
        }
        pending.patience = Patience::Lost;
        let mut late: Vec<RelPath> = std::mem::take(&mut pending.reads.awaited)
            .into_keys()
            .collect();
        let view = base.view();
        let scope = view.scope_of(&pending.ask);
        late.extend(
            view.tracker
                .reconciliation
                .under_way()
                .filter(|path| view.covers(&scope, path))
                .cloned(),
        );
        for path in &late {
            base.tracker.give_up(path);
        }
        pending.late.extend(late);
    }
}

/// Starts the time that a list waits for its reads, if it has something to wait
/// for.
pub(crate) fn be_patient(request: RequestId, pending: &mut Pending, turn: &mut Turn<'_>) {
    pending.patience.arrived(turn.now);
    let waits = !pending.reads.awaited.is_empty()
        || turn.tracker.written().len() > 0
        || turn.tracker.reconciliation.is_under_way();
    if waits && pending.patience.check().is_none() {
        let due = turn.now + PATIENCE;
        pending.patience.schedule(Check {
            due,
            since: turn.now,
        });
        turn.timers.insert((due, Timer::Request(request)));
    }
}

impl View<'_> {
    /// Returns the scope of a pending request.
    pub(crate) fn scope_of(&self, ask: &Ask) -> Scope {
        match ask {
            Ask::Client { ask, .. } => self.scope_of_request(ask),
            Ask::Expire(edit) => Scope::Paths(self.paths_of_edit(*edit)),
            Ask::EndCommand(_) | Ask::WithdrawCommand(_) | Ask::CommandBegan(..) => {
                Scope::Everything
            }
            Ask::Look(path) => Scope::Paths(vec![path.clone()]),
        }
    }

    /// Returns whether a path is in a scope.
    pub(crate) fn covers(&self, scope: &Scope, path: &RelPath) -> bool {
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
    pub(crate) fn by_all_names(&self, mut files: Vec<RelPath>) -> Vec<RelPath> {
        files.sort();
        files.dedup();
        if !self.has_several_names() {
            return files;
        }
        files.iter().flat_map(|file| self.names_of(file)).collect()
    }

    /// Returns the paths that a request tracks or looks at and that are not
    /// watched yet.
    pub(crate) fn paths_to_borrow(&self, ask: &Request) -> Vec<RelPath> {
        if row(ask).paths == Use::Names {
            return Vec::new();
        }
        let named = paths(ask).into_iter();
        let mut paths: Vec<RelPath> = named
            .filter_map(|path| self.resolve_name(path).ok())
            .filter(|path| !self.state.paths.contains_key(path) && !self.state.names.is_other(path))
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the paths of the workspace that a request names.
    pub(crate) fn paths_named(&self, ask: &Request) -> Vec<RelPath> {
        let named = paths(ask).into_iter();
        named.filter_map(|path| self.resolve(path).ok()).collect()
    }

    /// Returns the names of files that the answer to a request uses (FILE-1).
    pub(crate) fn names_used_by(&self, ask: &Request) -> NamesUsed {
        let edit = edit_named(ask).and_then(|named| self.edit_of(named));
        let edit = edit.and_then(|edit| self.state.edits.get(&edit));
        let named = paths(ask).into_iter();
        let named = named.filter_map(|path| self.resolve_name(path).ok());
        let named = named.map(|name| (self.file_of(&name), name));
        let begun = edit.iter().flat_map(|edit| &edit.files);
        let begun = begun.map(|file| {
            let name = file.name.as_ref().unwrap_or(&file.path);
            (file.path.clone(), name.clone())
        });
        NamesUsed {
            session: session(ask)
                .or(edit.map(|edit| &edit.fact.session))
                .cloned(),
            named: named.collect(),
            begun: begun.collect(),
        }
    }

    /// Returns the scope of a request: what its answer covers.
    pub(crate) fn scope_of_request(&self, ask: &Request) -> Scope {
        let paths = self.paths_named(ask);
        let row = row(ask);
        match row.about {
            // The shell requests what it needs itself.
            _ if row.by_shell => Scope::Paths(Vec::new()),
            About::Paths if !paths.is_empty() => Scope::Paths(paths),
            About::Paths | About::Session => match session(ask) {
                Some(session) => Scope::Session(session.clone()),
                None => Scope::Everything,
            },
            About::Edit => {
                let edit = edit_named(ask).and_then(|named| self.edit_of(named));
                let mut paths = paths;
                paths.extend(edit.map_or_else(Vec::new, |edit| self.paths_of_edit(edit)));
                Scope::Paths(paths)
            }
            About::Everything => Scope::Everything,
        }
    }
}
