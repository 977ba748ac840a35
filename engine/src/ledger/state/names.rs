//! What the state does when two names become one file, and when names part
//! (FILE-1, FILE-2).

use super::{PathState, State};
use crate::ledger::knowledge::Knowledge;
use crate::ledger::names::Parting;
use crate::small_set::SmallSet;
use std::borrow::Cow;
use touchmark_proto::{Hash, RelPath, SessionId};

/// The maximum number of changes that are kept of a name that became another
/// file's.
const MOST: usize = 64;

impl State {
    /// Returns the name by which the file of `name` is known.
    pub fn file_of<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        self.names.file_of(name)
    }

    pub(super) fn name_used(&mut self, session: &SessionId, name: &RelPath, file: &RelPath) {
        let held = self.knowledge(session, file).is_some();
        self.names.use_name(session, name, file, held);
    }

    /// Releases one of a session's names of a file. Returns the file if the
    /// session used it by no other name, so that it has to be untracked.
    pub(super) fn untracked(&mut self, session: &SessionId, name: &RelPath) -> Option<RelPath> {
        let file = self.names.file_of(name).clone();
        if self.names.uses_another(session, name, &file) {
            self.names.let_go(session, name, &file);
            return None;
        }
        Some(file)
    }

    /// Joins a tracked name to another tracked file, since both were found to
    /// be one file (FILE-1).
    pub(super) fn names_joined(&mut self, n: u64, name: &RelPath, file: &RelPath) {
        let (Some(gone), Some(known)) = (self.paths.remove(name), self.paths.get_mut(file)) else {
            return;
        };
        let holders = (
            gone.holders.iter().cloned().collect::<Vec<_>>(),
            known.holders.iter().cloned().collect::<Vec<_>>(),
        );
        for one in gone.taken.iter() {
            known.taken.push(one.clone());
        }
        for holder in &holders.0 {
            let Some(session) = self.sessions.get_mut(holder) else {
                continue;
            };
            known.holders.insert(holder.clone());
            let by_name = session.files.remove(name);
            let by_file = session.files.remove(file);
            let owed = |knowledge: &Knowledge, state: &PathState| {
                let out_of_date = knowledge.differs(known.held.hash);
                out_of_date && state.newest_to_report(holder, knowledge) > knowledge.told
            };
            let is_same = gone.held.hash == known.held.hash;
            let owed = by_name.as_ref().is_some_and(|by_name| {
                by_name.differs(known.held.hash) && (!is_same || owed(by_name, &gone))
            }) || by_file.as_ref().is_some_and(|by_file| owed(by_file, known));
            let by_name = by_name.map(|by_name| brought(n, holder, by_name, &gone, known));
            let knowledge = match (by_name, by_file) {
                (Some(one), Some(other)) => Some(merged(one, other, known.held.hash)),
                (one, other) => one.or(other),
            };
            session.pending.remove(name);
            session.pending.remove(file);
            if let Some(mut knowledge) = knowledge {
                match owed {
                    true => knowledge.behind = n,
                    false => {
                        knowledge.told = knowledge
                            .told
                            .max(known.newest_to_report(holder, &knowledge))
                    }
                }
                if owed {
                    session.pending.insert(file.clone());
                }
                session.files.insert(file.clone(), knowledge);
            }
            for lost in session.lost.iter_mut().filter(|lost| lost.path == *name) {
                lost.path = file.clone();
            }
        }
        for edit in self.edits.values_mut() {
            for open in edit.files.iter_mut().filter(|open| open.path == *name) {
                open.path = file.clone();
                open.name.get_or_insert_with(|| name.clone());
            }
        }
        for report in self.reports.iter_mut().filter(|r| r.path == *name) {
            report.path = file.clone();
        }
        self.names
            .join(name, file, (holders.0.iter(), holders.1.iter()));
    }

    /// Parts names from a file, since they now lead to another file (FILE-2).
    /// Both files keep the history so far. Each session goes with the names
    /// that it used.
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
            for open in edit.files.iter_mut().filter(|open| open.path == *file) {
                if open
                    .name
                    .as_ref()
                    .is_some_and(|name| leaving.contains(name))
                {
                    open.path = first.clone();
                    open.name = open.name.take().filter(|name| name != first);
                    open.parted = Some(file.clone());
                } else {
                    open.parted = Some(first.clone());
                }
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

/// Returns what a session has seen of a name that has become a name of another
/// file. From now on, the file's changes are changes of the session's copy.
/// Changes before that are those of the old name, and the file's content at
/// that moment counts as one more.
fn brought(
    n: u64,
    session: &SessionId,
    mut knowledge: Knowledge,
    name: &PathState,
    file: &PathState,
) -> Knowledge {
    if knowledge.differs(file.held.hash) {
        let own = name.versions.iter().map(Box::as_ref);
        let own = own.filter(|kept| kept.n > knowledge.at);
        let came = file.latest().filter(|kept| kept.hash == file.held.hash);
        let mut changes: Vec<_> = own
            .chain(came)
            .filter(|kept| !kept.is_edit_of(session))
            .cloned()
            .collect();
        changes.sort_by_key(|kept| kept.n);
        let earlier = knowledge
            .brought
            .take()
            .map_or_else(Vec::new, |earlier| *earlier);
        changes.splice(..0, earlier);
        changes.drain(..changes.len().saturating_sub(MOST));
        knowledge.brought = (!changes.is_empty()).then(|| Box::new(changes));
    }
    knowledge.at = n;
    knowledge
}

/// Returns what a session has seen of a file that it tracked by two names. It
/// is fresh only if both copies are: if one is out of date, the change has to
/// be reported.
fn merged(one: Knowledge, other: Knowledge, held: Option<Hash>) -> Knowledge {
    let (differ, at) = ((one.differs(held), other.differs(held)), (one.at, other.at));
    let (mut kept, rest) = match differ {
        (true, _) => (one, other),
        (_, true) => (other, one),
        _ if one.any() => (one, other),
        _ => (other, one),
    };
    kept.at = match differ {
        (true, true) => at.0.min(at.1),
        (true, false) | (false, true) => kept.at,
        (false, false) => at.0.max(at.1),
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
    kept.told = kept.told.max(rest.told);
    kept
}
