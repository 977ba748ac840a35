//! One file, many names (FILE-1, FILE-2): which file a tracked name leads to,
//! and by which names a session has used a file.
//!
//! A file is known by the first of its names that was tracked. Everything else
//! in the state is kept by that one; names are translated where they come in
//! and go out.

use std::collections::{BTreeMap, BTreeSet};

use touchmark_proto::{RelPath, SessionId};

/// The names of files that have several. What is not in here is its own file
/// and has no other name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The file of each name that is not the file's own.
    pub(crate) files: BTreeMap<RelPath, RelPath>,
    /// The opposite, and who uses which.
    pub(crate) several: BTreeMap<RelPath, Several>,
    /// Whose earlier facts belong to a file's history as well, and up to
    /// which.
    pub(crate) before: BTreeMap<RelPath, Vec<(RelPath, u64)>>,
}

/// The names of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Several {
    /// All but its own.
    pub(crate) others: BTreeSet<RelPath>,
    /// By which names sessions have used it, the last one last. Who is not in
    /// here has used it by its own name.
    pub(crate) used: BTreeMap<SessionId, Vec<RelPath>>,
}

/// What becomes of what a session knows of a file when names leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// It has used no name that leaves.
    Stays,
    /// It has used none that stays.
    Leaves,
    /// It has used both.
    Both,
}

impl Names {
    /// Whether every file has one name only.
    pub fn is_empty(&self) -> bool {
        self.several.is_empty()
    }

    /// The file that a name leads to: itself, if no other is known.
    pub fn file_of<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        self.files.get(name).unwrap_or(name)
    }

    /// Whether it is a name of a file that goes by another.
    pub fn is_other(&self, name: &RelPath) -> bool {
        self.files.contains_key(name)
    }

    /// Whether a file has other names than its own.
    pub fn has_others(&self, file: &RelPath) -> bool {
        self.several.contains_key(file)
    }

    /// Every name that is not its file's own.
    pub fn others(&self) -> impl Iterator<Item = &RelPath> {
        self.files.keys()
    }

    /// A file's names but for its own.
    pub fn others_of(&self, file: &RelPath) -> impl Iterator<Item = &RelPath> {
        let several = self.several.get(file).into_iter();
        several.flat_map(|several| &several.others)
    }

    /// The name that a session has used last for a file.
    pub fn spoken<'a>(&'a self, session: &SessionId, file: &'a RelPath) -> &'a RelPath {
        let used = self.used(session, file);
        used.and_then(<[RelPath]>::last).unwrap_or(file)
    }

    /// The names by which a session has used a file, the last one last; `None`
    /// for its own name only.
    pub fn used(&self, session: &SessionId, file: &RelPath) -> Option<&[RelPath]> {
        let used = self.several.get(file)?.used.get(session)?;
        Some(used)
    }

    /// Whose facts up to which number belong to a file's history, beside its
    /// own.
    pub fn history(&self, file: &RelPath) -> &[(RelPath, u64)] {
        self.before.get(file).map_or(&[], Vec::as_slice)
    }

    /// A session uses a file by a name; `held` says whether it has used the
    /// file before.
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
            // Until now it was its own name that the session used.
            if held { vec![file.clone()] } else { Vec::new() }
        });
        used.retain(|earlier| earlier != name);
        used.push(name.clone());
        self.tidy(file);
    }

    /// Whether a session would have used one name less, and still another, if
    /// it let go of that one.
    pub fn uses_another(&self, session: &SessionId, name: &RelPath, file: &RelPath) -> bool {
        self.used(session, file)
            .is_some_and(|used| used.len() > 1 && used.contains(name))
    }

    /// A session lets go of one of several names.
    pub(crate) fn let_go(&mut self, session: &SessionId, name: &RelPath, file: &RelPath) {
        if let Some(several) = self.several.get_mut(file)
            && let Some(used) = several.used.get_mut(session)
        {
            used.retain(|earlier| earlier != name);
        }
        self.tidy(file);
    }

    /// A session holds a file no longer, by any name.
    pub(crate) fn release(&mut self, session: &SessionId, file: &RelPath) {
        if let Some(several) = self.several.get_mut(file) {
            several.used.remove(session);
        }
        self.tidy(file);
    }

    /// A file is not tracked any more.
    pub(crate) fn forget(&mut self, file: &RelPath) {
        if let Some(several) = self.several.remove(file) {
            for name in several.others {
                self.files.remove(&name);
            }
        }
        self.before.remove(file);
    }

    /// All names of `joins` lead to `file` from now on, and its past is no part
    /// of the file's; `holders` are the sessions that have used each.
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

    /// What becomes of what a session knows of a file, if these names leave.
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

    /// From fact `n` on these names of a file, none of them its own, are a file
    /// by themselves, known by the first.
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

    /// Drops names of a file that nobody uses, and what goes without saying.
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
