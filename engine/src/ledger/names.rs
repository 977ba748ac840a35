//! Files with several names (FILE-1, FILE-2): which file a tracked name
//! resolves to, and by which names each session has used a file.
//!
//! A file is known by the first of its names that was tracked. The rest of the
//! state uses only that name. Names are translated when a request comes in and
//! when an answer goes out.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::{RelPath, SessionId};

/// The names of files that have several. A name that is not in here is its own
/// file and has no other name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// For each name that is not its file's own: the file.
    pub(crate) files: BTreeMap<RelPath, RelPath>,
    /// For each file with several names: its names, and which session uses
    /// which.
    pub(crate) several: BTreeMap<RelPath, Several>,
    /// For each file: earlier names whose facts, up to a number, belong to its
    /// history as well.
    pub(crate) before: BTreeMap<RelPath, Vec<(RelPath, u64)>>,
}

/// The names of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Several {
    /// The names other than the file's own.
    pub(crate) others: BTreeSet<RelPath>,
    /// The names by which each session has used the file, the most recent last.
    /// A session that is not in here has used it by its own name only.
    pub(crate) used: BTreeMap<SessionId, Vec<RelPath>>,
}

/// What happens to what a session has seen of a file when names leave the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The session has used no name that leaves: it keeps the old file.
    Stays,
    /// The session has used only names that leave: it goes with them.
    Leaves,
    /// The session has used names of both: it gets both files.
    Both,
}

impl Names {
    /// Returns whether every file has only one name.
    pub fn is_empty(&self) -> bool {
        self.several.is_empty()
    }

    /// Returns the file that a name resolves to: the name itself, if no other
    /// is known.
    pub fn file_of<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        self.files.get(name).unwrap_or(name)
    }

    /// Returns whether the name belongs to a file that is known by another
    /// name.
    pub fn is_other(&self, name: &RelPath) -> bool {
        self.files.contains_key(name)
    }

    /// Returns whether a file has other names than its own.
    pub fn has_others(&self, file: &RelPath) -> bool {
        self.several.contains_key(file)
    }

    /// Returns every name that is not its file's own, for all files.
    pub fn others(&self) -> impl Iterator<Item = &RelPath> {
        self.files.keys()
    }

    /// Returns a file's names except its own.
    pub fn others_of(&self, file: &RelPath) -> impl Iterator<Item = &RelPath> {
        let several = self.several.get(file).into_iter();
        several.flat_map(|several| &several.others)
    }

    /// Returns the name that a session used last for a file.
    pub fn last_used<'a>(&'a self, session: &SessionId, file: &'a RelPath) -> &'a RelPath {
        let used = self.used(session, file);
        used.and_then(<[RelPath]>::last).unwrap_or(file)
    }

    /// Returns the names by which a session has used a file, the most recent
    /// last, or `None` if only by its own name.
    pub fn used(&self, session: &SessionId, file: &RelPath) -> Option<&[RelPath]> {
        let used = self.several.get(file)?.used.get(session)?;
        Some(used)
    }

    /// Returns the earlier names, each with a fact number, whose facts up to
    /// that number belong to a file's history.
    pub fn history(&self, file: &RelPath) -> &[(RelPath, u64)] {
        self.before.get(file).map_or(&[], Vec::as_slice)
    }

    /// Records that a session uses a file by a name. `held` says whether it
    /// tracked the file before.
    pub(crate) fn use_name(
        &mut self,
        session: &SessionId,
        name: &RelPath,
        file: &RelPath,
        held: bool,
    ) {
        if name != file {
            self.files.insert(name.clone(), file.clone());
        } else if !self.several.contains_key(file) {
            return;
        }
        let several = self.several.entry(file.clone()).or_default();
        if name != file {
            several.others.insert(name.clone());
        }
        let used = several.used.entry(session.clone()).or_insert_with(|| {
            // Until now, the session used the file by its own name.
            if held { vec![file.clone()] } else { Vec::new() }
        });
        used.retain(|earlier| earlier != name);
        used.push(name.clone());
        self.tidy(file);
    }

    /// Returns whether a session uses this name of a file and at least one
    /// other, so that it would keep the file if it released the name.
    pub fn uses_another(&self, session: &SessionId, name: &RelPath, file: &RelPath) -> bool {
        self.used(session, file)
            .is_some_and(|used| used.len() > 1 && used.contains(name))
    }

    /// Records that a session releases one of several names.
    pub(crate) fn let_go(&mut self, session: &SessionId, name: &RelPath, file: &RelPath) {
        if let Some(several) = self.several.get_mut(file)
            && let Some(used) = several.used.get_mut(session)
        {
            used.retain(|earlier| earlier != name);
        }
        self.tidy(file);
    }

    /// Records that a session no longer tracks a file, by any name.
    pub(crate) fn release(&mut self, session: &SessionId, file: &RelPath) {
        if let Some(several) = self.several.get_mut(file) {
            several.used.remove(session);
        }
        self.tidy(file);
    }

    /// Removes a file that is not tracked any more.
    pub(crate) fn forget(&mut self, file: &RelPath) {
        if let Some(several) = self.several.remove(file) {
            for name in several.others {
                self.files.remove(&name);
            }
        }
        self.before.remove(file);
    }

    /// Makes all names of `joins` names of `file`. The past of `joins` does not
    /// become part of the file's history. `holders` are the sessions that track
    /// each of the two.
    pub(crate) fn join<'a>(
        &mut self,
        joins: &RelPath,
        file: &RelPath,
        holders: (
            impl IntoIterator<Item = &'a SessionId>,
            impl IntoIterator<Item = &'a SessionId>,
        ),
    ) {
        let gone = self.several.remove(joins).unwrap_or_default();
        let several = self.several.entry(file.clone()).or_default();
        for holder in holders.1 {
            several
                .used
                .entry(holder.clone())
                .or_insert_with(|| vec![file.clone()]);
        }
        for holder in holders.0 {
            let by = gone.used.get(holder);
            let by = by.cloned().unwrap_or_else(|| vec![joins.clone()]);
            let used = several.used.entry(holder.clone()).or_default();
            used.retain(|name| !by.contains(name));
            used.extend(by);
        }
        several.others.extend(gone.others);
        several.others.insert(joins.clone());
        for name in &several.others {
            self.files.insert(name.clone(), file.clone());
        }
        self.before.remove(joins);
        self.tidy(file);
    }

    /// Returns which side gets what a session has seen of a file, if these
    /// names leave the file.
    pub(crate) fn parting(
        &self,
        session: &SessionId,
        file: &RelPath,
        leaving: &[RelPath],
    ) -> Parting {
        let Some(used) = self.used(session, file) else {
            return Parting::Stays;
        };
        let leaves = used.iter().any(|name| leaving.contains(name));
        let stays = used.iter().any(|name| !leaving.contains(name));
        match (leaves, stays) {
            (true, true) => Parting::Both,
            (true, false) => Parting::Leaves,
            (false, _) => Parting::Stays,
        }
    }

    /// Makes these names of a file, none of them its own, a separate file from
    /// fact `n` on. It is known by the first of them.
    pub(crate) fn part(&mut self, file: &RelPath, leaving: &[RelPath], n: u64) {
        let (Some(first), Some(several)) = (leaving.first(), self.several.get_mut(file)) else {
            return;
        };
        let mut own = Several::default();
        for name in leaving {
            several.others.remove(name);
            self.files.remove(name);
            if name != first {
                own.others.insert(name.clone());
                self.files.insert(name.clone(), first.clone());
            }
        }
        for (session, used) in &mut several.used {
            let (leave, stay): (Vec<RelPath>, Vec<RelPath>) =
                used.drain(..).partition(|name| leaving.contains(name));
            *used = stay;
            if !leave.is_empty() {
                own.used.insert(session.clone(), leave);
            }
        }
        self.several.insert(first.clone(), own);
        let mut before = self.before.get(file).cloned().unwrap_or_default();
        before.push((file.clone(), n));
        self.before.insert(first.clone(), before);
        let first = first.clone();
        self.tidy(file);
        self.tidy(&first);
    }

    /// Drops names of a file that no session uses, and entries that say
    /// nothing.
    fn tidy(&mut self, file: &RelPath) {
        let Some(several) = self.several.get_mut(file) else {
            return;
        };
        several.used.retain(|_, used| !used.is_empty());
        let unused: Vec<RelPath> = several
            .others
            .iter()
            .filter(|name| !several.used.values().any(|used| used.contains(name)))
            .cloned()
            .collect();
        for name in unused {
            several.others.remove(&name);
            self.files.remove(&name);
        }
        if several.others.is_empty() {
            self.several.remove(file);
        }
    }
}

#[cfg(test)]
mod tests;
