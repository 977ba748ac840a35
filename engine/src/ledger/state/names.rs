//! Names that become one file, and names that part (FILE-1, FILE-2).

use super::{PathState, State};
use crate::ledger::knowledge::Knowledge;
use crate::ledger::names::Parting;
use crate::small_set::SmallSet;
use std::borrow::Cow;
use touchmark_proto::{Hash, RelPath, SessionId};

/// Versions at hand of one file at most, as where they are made.
const MOST: usize = 64;

impl State {
    /// The file that a name leads to.
    pub fn file_of<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        self.names.file_of(name)
    }

    pub(super) fn name_used(&mut self, session: &SessionId, name: &RelPath, file: &RelPath) {
        let held = self.knowledge(session, file).is_some();
        self.names.use_name(session, name, file, held);
    }

    /// A session lets go of one of its names of a file, or of the file.
    /// Returns the file if it is let go of.
    pub(super) fn untracked(&mut self, session: &SessionId, name: &RelPath) -> Option<RelPath> {
        let file = self.names.file_of(name).clone();
        if self.names.uses_another(session, name, &file) {
            self.names.let_go(session, name, &file);
            return None;
        }
        Some(file)
    }

    /// A tracked name turned out to lead to the same file as another.
    pub(super) fn names_joined(&mut self, n: u64, name: &RelPath, file: &RelPath) {
        let (Some(gone), Some(known)) = (self.paths.remove(name), self.paths.get_mut(file)) else {
            return;
        };
        let holders = (
            gone.holders.iter().cloned().collect::<Vec<_>>(),
            known.holders.iter().cloned().collect::<Vec<_>>(),
        );
        let held = known.held.hash;
        known.take_in(*gone);
        for holder in &holders.0 {
            let Some(session) = self.sessions.get_mut(holder) else {
                continue;
            };
            known.holders.insert(holder.clone());
            let by_name = session.files.remove(name);
            let by_file = session.files.remove(file);
            let knowledge = match (by_name, by_file) {
                (Some(one), Some(other)) => Some(merged(one, other, held)),
                (one, other) => one.or(other),
            };
            if let Some(mut knowledge) = knowledge {
                // A copy that is out of date is to be told, also where nothing
                // was recorded that says why.
                if knowledge.any() && !knowledge.is_fresh(held) {
                    let newest = knowledge.newest(holder, known);
                    if newest <= knowledge.told {
                        knowledge.behind = n;
                    }
                    session.pending.insert(file.clone());
                }
                session.files.insert(file.clone(), knowledge);
            }
            if session.pending.remove(name) {
                session.pending.insert(file.clone());
            }
            for lost in session.lost.iter_mut().filter(|lost| lost.path == *name) {
                lost.path = file.clone();
            }
        }
        for edit in self.edits.values_mut() {
            for open in edit.files.iter_mut().filter(|open| open.path == *name) {
                open.path = file.clone();
            }
        }
        for report in self.reports.iter_mut().filter(|r| r.path == *name) {
            report.path = file.clone();
        }
        self.names
            .join(name, file, n, (holders.0.iter(), holders.1.iter()));
    }

    /// Names of a file lead to another by now: with the history so far they
    /// go on by themselves, and who used them goes with them.
    pub(super) fn names_parted(&mut self, n: u64, file: &RelPath, leaving: &[RelPath]) {
        let (Some(first), Some(known)) = (leaving.first(), self.paths.get(file)) else {
            return;
        };
        let holders: Vec<(SessionId, Parting)> = known
            .holders
            .iter()
            .map(|holder| (holder.clone(), self.names.parting(holder, file, leaving)))
            .collect();
        let mut own = known.clone();
        own.holders = SmallSet::default();
        let mut stay = SmallSet::default();
        for (holder, parting) in &holders {
            if *parting != Parting::Leaves {
                stay.insert(holder.clone());
            }
            if *parting == Parting::Stays {
                continue;
            }
            own.holders.insert(holder.clone());
            let Some(session) = self.sessions.get_mut(holder) else {
                continue;
            };
            if let Some(knowledge) = session.files.get(file).map(Cow::into_owned) {
                session.files.insert(first.clone(), knowledge);
            }
            if session.pending.contains(file) {
                session.pending.insert(first.clone());
            }
            if *parting == Parting::Leaves {
                session.files.remove(file);
                session.pending.remove(file);
                for lost in session.lost.iter_mut().filter(|lost| lost.path == *file) {
                    lost.path = first.clone();
                }
            }
        }
        for edit in self.edits.values_mut() {
            let parting = self.names.parting(&edit.fact.session, file, leaving);
            let open = edit.files.iter().position(|open| open.path == *file);
            let Some(open) = open.filter(|_| parting != Parting::Stays) else {
                continue;
            };
            let mut other = edit.files[open].clone();
            other.path = first.clone();
            match parting {
                Parting::Leaves => edit.files[open] = other,
                _ => edit.files.push(other),
            }
        }
        let reports = self.reports.iter().filter(|report| report.path == *file);
        let mut reports: Vec<_> = reports.cloned().collect();
        for report in &mut reports {
            report.path = first.clone();
        }
        self.reports.append(&mut reports);
        self.names.part(file, leaving, n);
        if !own.holders.is_empty() {
            self.paths.insert(first.clone(), own);
        }
        if let Some(known) = self.paths.get_mut(file) {
            known.holders = stay;
            if known.holders.is_empty() {
                self.paths.remove(file);
                self.names.forget(file);
            }
        }
    }
}

impl PathState {
    /// The versions of both in their order: they are one file's from now on.
    fn take_in(&mut self, other: Self) {
        self.versions.extend(other.versions);
        self.versions.sort_by_key(|kept| kept.n);
        self.versions.dedup_by_key(|kept| kept.n);
        let beyond = self.versions.len().saturating_sub(MOST);
        self.versions.drain(..beyond);
        self.newest = self.newest.max(other.newest);
        other.taken.into_iter().for_each(|one| self.taken.push(one));
    }
}

/// What a session knows of a file that it held by two names: each line that it
/// believes by either has to be what the file holds. Where one copy is out of
/// date, the session is to be told.
fn merged(one: Knowledge, other: Knowledge, held: Option<Hash>) -> Knowledge {
    let stale = |knowledge: &Knowledge| knowledge.any() && !knowledge.is_fresh(held);
    let (mut kept, rest, told) = match (stale(&one), stale(&other)) {
        (true, _) => (one, other, false),
        (_, true) => (other, one, false),
        _ if one.any() => (one, other, true),
        _ => (other, one, true),
    };
    for seen in &rest.seen {
        kept.add(seen);
    }
    kept.unsure.add(&rest.unsure);
    kept.uncertain |= rest.uncertain;
    kept.read_count = kept.read_count.max(rest.read_count);
    kept.read_at = kept.read_at.max(rest.read_at);
    kept.edit_at = kept.edit_at.max(rest.edit_at);
    kept.copied &= rest.copied;
    if told {
        kept.told = kept.told.max(rest.told);
        kept.at = kept.at.max(rest.at);
    }
    kept
}
