//! Where names were last found to lead, beyond the recorded facts: through
//! which symlinks, to which of a file's several links. Lost at a restart,
//! after which every name is looked at anew.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use touchmark_proto::RelPath;

use crate::by_path::ByPath;
use crate::input::{Found, Object};
use crate::tracker::Tracker;
use crate::view::View;

/// Looks remembered for each name. A read that is owed has its number from
/// before the one that is under way, so a look may seem twice as long as it
/// was, and three before it may overlap it.
pub(super) const LOOKS: usize = 4;

/// Where a name was found to lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    /// The real name, where symlinks lie on the way.
    pub(super) real: Option<RelPath>,
    /// The file, where it has several links.
    pub(super) object: Option<Object>,
    /// The last looks that found it there, the newest last. One would not do:
    /// where names are looked at in turn without a pause, each look overlaps
    /// the last one at every other name.
    pub(super) looks: SmallVec<[Look; LOOKS]>,
    /// Reads ordered from this one on look later than the first that found it
    /// there; 0 if it was there before.
    pub(super) first: u64,
}

/// A look at where a name leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The read.
    pub(super) ticket: u64,
    /// Reads ordered from this one on look later.
    pub(super) since: u64,
}

/// Where names lead that are not plain, or have been taken for a file's
/// second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    pub(super) ways: ByPath<Way>,
    pub(super) by_real: BTreeMap<RelPath, BTreeSet<RelPath>>,
    pub(super) by_object: BTreeMap<Object, BTreeSet<RelPath>>,
    /// Names of a file known by another that no session has used.
    pub(super) aliases: BTreeMap<RelPath, RelPath>,
    /// Tracked names by the number of their inode, for finding the other name
    /// of a file that has just got its second. Made when that is needed first;
    /// what it says may be out of date.
    by_inode: Option<ByInode>,
    /// Names that were looked at before their file's own.
    pub(super) unsure: BTreeSet<RelPath>,
    /// The newest read taken in of a file that has several names.
    pub(super) taken: BTreeMap<RelPath, u64>,
}

/// Names by the number of their inode.
#[derive(Clone, Debug, Default)]
struct ByInode {
    names: BTreeMap<u64, BTreeSet<RelPath>>,
    /// How many names that are.
    count: usize,
}

impl ByInode {
    fn insert(&mut self, name: RelPath, inode: u64) {
        let names = self.names.entry(inode).or_default();
        self.count += usize::from(names.insert(name));
    }
}

impl Ways {
    /// Whether nothing but plain names is known.
    pub(super) fn is_empty(&self) -> bool {
        self.ways.is_empty() && self.aliases.is_empty()
    }

    pub(super) fn note(&mut self, name: &RelPath, way: Way) {
        self.forget(name);
        if let Some(real) = &way.real {
            let names = self.by_real.entry(real.clone()).or_default();
            names.insert(name.clone());
        }
        if let Some(object) = way.object {
            let names = self.by_object.entry(object).or_default();
            names.insert(name.clone());
        }
        self.ways.insert(name.clone(), way);
    }

    pub(super) fn forget(&mut self, name: &RelPath) {
        let Some(way) = self.ways.remove(name) else {
            return;
        };
        if let Some(real) = way.real
            && let Some(names) = self.by_real.get_mut(&real)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_real.remove(&real);
            }
        }
        if let Some(object) = way.object
            && let Some(names) = self.by_object.get_mut(&object)
        {
            names.remove(name);
            if names.is_empty() {
                self.by_object.remove(&object);
            }
        }
    }

    pub(super) fn real<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        let way = self.ways.get(name);
        way.and_then(|way| way.real.as_ref()).unwrap_or(name)
    }

    /// Whether two names lead to one file, as far as is known.
    pub(super) fn are_one(&self, one: &RelPath, other: &RelPath) -> bool {
        let object = |name| self.ways.get(name).and_then(|way: &Way| way.object);
        self.real(one) == self.real(other)
            || object(one).is_some_and(|found| object(other) == Some(found))
    }

    pub(super) fn has(&self, name: &RelPath) -> bool {
        self.ways.contains_key(name)
    }

    /// Whether two names have led to one file at the same time: one was found
    /// to before the other was, and after that as well. Else it may have left
    /// the one for the other between the two looks.
    pub(super) fn at_once(&self, one: &RelPath, other: &RelPath) -> bool {
        let around = |one: &Way, other: &Way| {
            let last = one.looks.last().map_or(0, |look| look.ticket);
            let between = |look: &Look| one.first <= look.ticket && look.since <= last;
            other.looks.iter().any(between)
        };
        let ways = self.ways.get(one).zip(self.ways.get(other));
        self.are_one(one, other)
            && ways.is_some_and(|(one, other)| around(one, other) || around(other, one))
    }

    /// Other names that lead to where this one does; of the second kind, those
    /// that may.
    pub(super) fn alike(&self, name: &RelPath) -> (Vec<RelPath>, Vec<RelPath>) {
        let real = self.real(name);
        let mut names: BTreeSet<RelPath> = self.by_real.get(real).cloned().unwrap_or_default();
        names.insert(real.clone());
        let object = self.ways.get(name).and_then(|way| way.object);
        let mut perhaps = Vec::new();
        if let Some(object) = object {
            names.extend(self.by_object.get(&object).into_iter().flatten().cloned());
            let listed = self.by_inode.as_ref();
            let listed = listed.and_then(|listed| listed.names.get(&object.inode));
            perhaps.extend(listed.into_iter().flatten().cloned());
        }
        names.remove(name);
        perhaps.retain(|other| other != name && !names.contains(other));
        (names.into_iter().collect(), perhaps)
    }
}

impl View<'_> {
    /// The file that a name leads to, by the name that everything is kept by.
    pub(crate) fn file_of(&self, name: &RelPath) -> RelPath {
        let name = self.tracker.ways.aliases.get(name).unwrap_or(name);
        self.state.names.file_of(name).clone()
    }

    /// Whether any file has several names.
    pub(crate) fn has_several_names(&self) -> bool {
        !self.state.names.is_empty() || !self.tracker.ways.aliases.is_empty()
    }

    /// The names of a file, its own included.
    pub(crate) fn names_of(&self, file: &RelPath) -> Vec<RelPath> {
        let mut names = vec![file.clone()];
        names.extend(self.state.names.others_of(file).cloned());
        let aliases = self.tracker.ways.aliases.iter();
        names.extend(
            aliases
                .filter(|(_, of)| *of == file)
                .map(|(name, _)| name.clone()),
        );
        names
    }

    /// Hints at several names, as one event told them: once for each file.
    pub(crate) fn files_hinted(&self, names: Vec<RelPath>) -> Vec<RelPath> {
        if self.tracker.ways.is_empty() && self.state.names.is_empty() {
            return names;
        }
        let mut by_file: BTreeMap<RelPath, RelPath> = BTreeMap::new();
        for name in names {
            let file = self.file_of(&name);
            let own = name == file;
            let hinted = by_file.entry(file).or_insert_with(|| name.clone());
            if own {
                *hinted = name;
            }
        }
        by_file.into_values().collect()
    }
}

impl Tracker {
    pub(super) fn inode_of(&self, name: &RelPath) -> Option<u64> {
        self.files.inode_of(name)
    }

    /// Remembers a tracked name's inode.
    pub(crate) fn note_inode(&mut self, name: &RelPath, found: &Found) {
        let Found::File(content) = found else {
            return;
        };
        let inode = content.stamp.inode;
        self.files.note_inode(name, content);
        let most = 2 * self.files.len() + 1_024;
        if let Some(by_inode) = &mut self.ways.by_inode {
            by_inode.insert(name.clone(), inode);
            if by_inode.count > most {
                self.ways.by_inode = None;
            }
        }
    }

    /// Every tracked name by the number of its inode.
    pub(super) fn list_inodes(&mut self) {
        if self.ways.by_inode.is_none() {
            let mut by_inode = ByInode::default();
            for (name, inode) in self.files.inodes() {
                by_inode.insert(name.clone(), inode);
            }
            self.ways.by_inode = Some(by_inode);
        }
    }

    /// What was hinted at by one of a file's names is said of the file.
    pub(super) fn bring_hints(&mut self, name: &RelPath, file: &RelPath) {
        let Some(by_name) = self.forget_live(name) else {
            return;
        };
        let live = self.live_mut(file);
        live.hints.join(&by_name.hints);
        live.save.episode = live.save.episode.max(by_name.save.episode);
    }

    /// A name is not taken for another file's any more, unless somebody has
    /// used it as such.
    pub(crate) fn no_alias(&mut self, name: &RelPath) {
        self.ways.aliases.remove(name);
    }

    /// Where a name led is not known any more, before the next look at it.
    pub(crate) fn no_way(&mut self, name: &RelPath) {
        self.ways.forget(name);
    }

    /// A name is watched no longer.
    pub(crate) fn forget_way(&mut self, name: &RelPath) {
        self.ways.forget(name);
        self.ways.aliases.remove(name);
        self.ways.aliases.retain(|_, of| of != name);
        self.ways.taken.remove(name);
        self.ways.unsure.remove(name);
    }
}
