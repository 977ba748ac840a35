//! Where names were last found to resolve to: through which symlinks, and to
//! which of a file's several links. This is not recorded in facts. After a
//! restart it is lost, and every name is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::SmallVec;
use touchmark_proto::RelPath;

use crate::by_path::ByPath;
use crate::disk::{Found, Object, ReadOutcome};
use crate::tracker::Tracker;

/// The number of reads remembered for each name. A pending read gets its number
/// before the one in progress is complete, so a read may seem to last twice as
/// long as it did. Three reads before it may then overlap it.
pub(crate) const LOOKS: usize = 4;

/// How often a request waits for one name to be read again because of what
/// another name was found to resolve to. Names that stand still need up to
/// [`LOOKS`] reads. Names that keep changing places never agree, and must not
/// keep a request waiting (LIM-6).
pub(crate) const MAX_LOOKS: u32 = 16;

/// Where a name was found to resolve to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// The real name; `None` if no symlinks are on the way.
    pub(crate) real: Option<RelPath>,
    /// The target of the symlink at this name; `None` if it is no symlink.
    pub(crate) link: Option<Arc<[u8]>>,
    /// The identity of the file; `None` if it does not have several links.
    pub(crate) object: Option<Object>,
    /// The last reads that found this, the newest last. One would not be
    /// enough: if several names are read in turn without a pause, each read
    /// overlaps the last read of every other name.
    pub(crate) looks: SmallVec<[Look; LOOKS]>,
    /// The number from which on reads are later than the first that found this;
    /// 0 if it was so from the beginning.
    pub(crate) first: u64,
}

/// A read that found where a name resolves to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The number of the read.
    pub(crate) ticket: u64,
    /// The number from which on reads begin after this one was complete.
    pub(crate) since: u64,
}

/// What is known of names that are symlinks or links of files with several
/// names, or that were compared with those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    pub(crate) ways: ByPath<Way>,
    pub(crate) by_real: BTreeMap<RelPath, BTreeSet<RelPath>>,
    pub(crate) by_object: BTreeMap<Object, BTreeSet<RelPath>>,
    /// Names of a file that is known by another name, if no session has used
    /// them.
    pub(crate) aliases: BTreeMap<RelPath, RelPath>,
    /// Tracked names by inode number. Used to find the other name of a file
    /// that has just got its second link. Built when it is first needed;
    /// entries may be out of date.
    by_inode: Option<ByInode>,
    /// Names that were read before their file's own name.
    pub(crate) unsure: BTreeSet<RelPath>,
    /// For each file with several names: the number of the newest read that was
    /// processed.
    pub(crate) taken: BTreeMap<RelPath, u64>,
    /// For each name: how many reads of it were ordered because of what another
    /// name resolves to, without a request, since the last hint about it.
    looked: BTreeMap<RelPath, u32>,
}

/// Names by inode number.
#[derive(Clone, Debug, Default)]
struct ByInode {
    names: BTreeMap<u64, BTreeSet<RelPath>>,
    /// The number of names.
    count: usize,
}

impl ByInode {
    fn insert(&mut self, name: RelPath, inode: u64) {
        let names = self.names.entry(inode).or_default();
        self.count += usize::from(names.insert(name));
    }
}

impl Ways {
    /// Returns whether nothing is known of symlinks and files with several
    /// names.
    pub(crate) fn is_empty(&self) -> bool {
        self.ways.is_empty() && self.aliases.is_empty()
    }

    /// Counts one more look at a name because of what another name resolves
    /// to. Returns whether it is within the limit.
    pub(crate) fn may_look(&mut self, name: &RelPath) -> bool {
        let count = self.looked.entry(name.clone()).or_default();
        *count += 1;
        *count <= MAX_LOOKS
    }

    /// Notes a hint about a name, which may resolve to another file now.
    pub(crate) fn hinted(&mut self, name: &RelPath) {
        self.looked.remove(name);
    }

    pub(crate) fn note(&mut self, name: &RelPath, way: Way) {
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

    pub(crate) fn forget(&mut self, name: &RelPath) {
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

    pub(crate) fn real<'a>(&'a self, name: &'a RelPath) -> &'a RelPath {
        let way = self.ways.get(name);
        way.and_then(|way| way.real.as_ref()).unwrap_or(name)
    }

    /// Returns whether two names resolve to one file, as far as is known.
    pub(crate) fn are_one(&self, one: &RelPath, other: &RelPath) -> bool {
        self.real(one) == self.real(other)
            || self
                .object(one)
                .is_some_and(|found| self.object(other) == Some(found))
    }

    pub(crate) fn has(&self, name: &RelPath) -> bool {
        self.ways.contains_key(name)
    }

    /// Returns whether two names have resolved to one file at the same time:
    /// one was found to before and after the other was. Else the file may have
    /// been renamed from one to the other between the two reads.
    pub(crate) fn at_once(&self, one: &RelPath, other: &RelPath) -> bool {
        let around = |one: &Way, other: &Way| {
            let last = one.looks.last().map_or(0, |look| look.ticket);
            let between = |look: &Look| one.first <= look.ticket && look.since <= last;
            other.looks.iter().any(between)
        };
        let ways = self.ways.get(one).zip(self.ways.get(other));
        self.are_one(one, other)
            && ways.is_some_and(|(one, other)| around(one, other) || around(other, one))
    }

    /// Returns the other names that resolve to the same file as this one.
    pub(crate) fn alike(&self, name: &RelPath) -> Vec<RelPath> {
        let real = self.real(name);
        let mut names: BTreeSet<RelPath> = self.by_real.get(real).cloned().unwrap_or_default();
        names.insert(real.clone());
        if let Some(object) = self.object(name) {
            names.extend(self.by_object.get(&object).into_iter().flatten().cloned());
        }
        names.remove(name);
        names.into_iter().collect()
    }

    /// Returns the file that a name was found to resolve to, or `None` if it is
    /// not known to have several links.
    fn object(&self, name: &RelPath) -> Option<Object> {
        self.ways.get(name).and_then(|way| way.object)
    }
}

impl Tracker {
    /// Returns the name behind the symlinks on a path, as it was last read;
    /// `None` if there were none.
    pub(crate) fn real_of(&self, name: &RelPath) -> Option<RelPath> {
        let way = self.ways.ways.get(name)?;
        way.real.clone()
    }

    /// Returns what a name contained that was a symlink when it was last read,
    /// or `None` if it was none.
    pub(crate) fn link_at(&self, name: &RelPath) -> Option<Arc<[u8]>> {
        let way = self.ways.ways.get(name)?;
        way.link.clone()
    }

    /// Notes whether a name that was a symlink is none any more, after a read
    /// of the name. `before` is what it contained until then.
    pub(crate) fn note_link(
        &mut self,
        file: &RelPath,
        before: Option<Arc<[u8]>>,
        outcome: &ReadOutcome,
    ) {
        if outcome.link.is_some() {
            if let Some(live) = self.live_if_any(file) {
                live.seen.link = None;
            }
        } else if matches!(outcome.found, Found::File(_) | Found::Absent) && before.is_some() {
            self.live_mut(file).seen.link = before;
        }
    }

    pub(crate) fn inode_of(&self, name: &RelPath) -> Option<u64> {
        self.files.inode_of(name)
    }

    /// Notes a watched name's inode, or that the name has no file.
    pub(crate) fn note_inode(&mut self, name: &RelPath, found: &Found) {
        let content = match found {
            Found::File(content) => content,
            Found::Unreadable { .. } | Found::Unstable { .. } => return,
            Found::Absent | Found::NotAFile { .. } | Found::Outside => {
                return self.files.no_inode(name);
            }
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

    /// Returns the tracked names that may resolve to the same file as this one,
    /// which is the only name that was found to. The file may have just got its
    /// second link.
    pub(crate) fn perhaps_alike(&mut self, name: &RelPath) -> Vec<RelPath> {
        let Some(object) = self.ways.object(name) else {
            return Vec::new();
        };
        if self
            .ways
            .by_object
            .get(&object)
            .is_none_or(|names| names.len() > 1)
        {
            return Vec::new();
        }
        let files = &self.files;
        if self.ways.by_inode.is_none() {
            let mut by_inode = ByInode::default();
            for (name, inode) in files.inodes() {
                by_inode.insert(name.clone(), inode);
            }
            self.ways.by_inode = Some(by_inode);
        }
        let listed = self.ways.by_inode.iter();
        let listed = listed.filter_map(|listed| listed.names.get(&object.inode));
        // A read answers the question for a name: it finds either that the
        // file has several links, or another file. So no name is read twice
        // because of what an earlier read of it found.
        let open = |other: &&RelPath| {
            files.inode_of(other) == Some(object.inode) && self.ways.object(other).is_none()
        };
        let listed = listed.flatten().filter(open);
        listed.filter(|other| *other != name).cloned().collect()
    }

    /// Moves the hints about one of a file's names to the file.
    pub(crate) fn bring_hints(&mut self, name: &RelPath, file: &RelPath) {
        let Some(by_name) = self.forget_live(name) else {
            return;
        };
        let live = self.live_mut(file);
        live.hints.join(&by_name.hints);
        live.save.episode = live.save.episode.max(by_name.save.episode);
    }

    /// Stops treating a name as another file's, unless a session has used it as
    /// such.
    pub(crate) fn no_alias(&mut self, name: &RelPath) {
        self.ways.aliases.remove(name);
    }

    /// Forgets where a name resolves to, until the next read of it.
    pub(crate) fn no_way(&mut self, name: &RelPath) {
        self.ways.forget(name);
    }

    /// Forgets a name that is no longer watched.
    pub(crate) fn forget_way(&mut self, name: &RelPath) {
        self.ways.forget(name);
        self.ways.aliases.remove(name);
        self.ways.aliases.retain(|_, of| of != name);
        self.ways.taken.remove(name);
        self.ways.unsure.remove(name);
        self.ways.looked.remove(name);
    }
}
