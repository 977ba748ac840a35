//! What is kept of each file besides the facts: whether it is watched, and the
//! stat of its last read.
//!
//! After a gap, a stat can prove a content without a read: if it is the same as
//! when the content was read, and its times were far enough in the past then,
//! nothing was written since (SYNC-4, FILE-5). Files without such a stat are
//! read. Stats are no facts. They are stored with the state in its snapshots,
//! and only save time.

use crate::by_name::ByName;
use touchmark_proto::RelPath;

use crate::disk::{Content, Stamp};
use crate::ledger::record::{Fact, Record};

/// One entry for each file, in the order of names. Two values are equal if the
/// same stats prove the same files.
#[derive(Clone, Debug, Default)]
pub struct Files(ByName<Tracked>);

/// The entry of one file. There are very many of these.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    /// The stat of a read. Perhaps only its inode is valid.
    stamp: Stamp,
    /// Whether the stat proves the path's content on record.
    is_proof: bool,
    /// Whether the inode is that of the last read.
    inode: bool,
    /// Whether the path is watched: `Track` was ordered, and no `Untrack`
    /// since.
    watched: bool,
}

impl Files {
    /// Returns the stat that proves a path's content on record, or `None`.
    pub fn of(&self, path: &RelPath) -> Option<Stamp> {
        self.get(path)
            .filter(|file| file.is_proof)
            .map(|file| file.stamp)
    }

    fn get(&self, path: &RelPath) -> Option<&Tracked> {
        self.0.get(path)
    }

    fn change<R>(&mut self, path: &RelPath, change: impl FnOnce(&mut Tracked) -> R) -> R {
        if let Some(file) = self.0.get_mut(path) {
            return change(file);
        }
        let mut file = Tracked::default();
        let result = change(&mut file);
        self.0.insert(path.clone(), file);
        result
    }

    /// Returns the paths whose content a stat proves, with that stat.
    fn proven(&self) -> impl Iterator<Item = (&RelPath, Stamp)> {
        let all = self.0.iter().filter(|(_, file)| file.is_proof);
        all.map(|(path, file)| (path, file.stamp))
    }

    /// Returns what one run of the engine leaves for the next, in which nothing
    /// is watched yet.
    pub(crate) fn left(self) -> Self {
        let is_new = self.0.iter().all(|(_, file)| !file.watched);
        match is_new {
            true => self,
            false => self
                .proven()
                .map(|(path, stamp)| (path.clone(), stamp))
                .collect(),
        }
    }

    /// Returns the number of files that have an entry.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the name by which a path is watched, or `None` if it is not.
    pub(crate) fn watched_as(&self, path: &RelPath) -> Option<&RelPath> {
        let (known, file) = self.0.get_key_value(path)?;
        file.watched.then_some(known)
    }

    /// Returns whether a path is watched.
    pub(crate) fn is_watched(&self, path: &RelPath) -> bool {
        self.watched_as(path).is_some()
    }

    /// Returns every watched path from the given one on.
    pub(crate) fn watched_from(&self, from: Option<&RelPath>) -> impl Iterator<Item = &RelPath> {
        let all = self.0.iter_from(from).filter(|(_, file)| file.watched);
        all.map(|(path, _)| path)
    }

    /// Marks a path as watched. Returns whether it was not.
    pub(crate) fn watch(&mut self, path: &RelPath) -> bool {
        self.change(path, |file| !std::mem::replace(&mut file.watched, true))
    }

    /// Marks a path as watched if a stat proves its content. Returns whether
    /// one does.
    pub(crate) fn watch_proven(&mut self, path: &RelPath) -> bool {
        let file = self.0.get_mut(path).filter(|file| file.is_proof);
        file.is_some_and(|file| {
            file.watched = true;
            true
        })
    }

    /// Removes the entry of a path. Returns whether it was watched.
    pub(crate) fn unwatch(&mut self, path: &RelPath) -> bool {
        self.is_watched(path) && self.0.remove(path).is_some()
    }

    /// Returns the inode number of a path, or `None` if it is not known.
    pub(crate) fn inode_of(&self, path: &RelPath) -> Option<u64> {
        let file = self.get(path).filter(|file| file.inode)?;
        Some(file.stamp.inode)
    }

    /// Returns each path whose inode number is known, with that number.
    pub(crate) fn inodes(&self) -> impl Iterator<Item = (&RelPath, u64)> {
        let all = self.0.iter().filter(|(_, file)| file.inode);
        all.map(|(path, file)| (path, file.stamp.inode))
    }

    /// Notes the inode number that a read of a path found.
    pub(crate) fn note_inode(&mut self, path: &RelPath, content: &Content) {
        self.change(path, |file| {
            // If the old stat still counts, the caller replaces or drops it
            // next.
            if !(content.settled && file.is_proof) {
                file.stamp.inode = content.stamp.inode;
                file.is_proof = false;
                file.inode = true;
            }
        });
    }

    /// Notes that a read of a path found no file.
    pub(crate) fn no_inode(&mut self, path: &RelPath) {
        if let Some(file) = self.0.get_mut(path) {
            file.inode = false;
        }
    }

    /// Notes the stat of a read that found the path's content on record.
    /// Returns whether this changes anything.
    pub(crate) fn note(&mut self, path: &RelPath, content: Content) -> bool {
        if !content.settled {
            self.forget(path);
            return false;
        }
        self.change(path, |file| {
            let news = !file.is_proof || file.stamp != content.stamp;
            *file = Tracked {
                stamp: content.stamp,
                is_proof: true,
                inode: true,
                watched: file.watched,
            };
            news
        })
    }

    /// Inserts a path with its stat from a snapshot.
    pub(crate) fn insert(&mut self, path: RelPath, stamp: Stamp) {
        let file = Tracked {
            stamp,
            is_proof: true,
            inode: true,
            watched: false,
        };
        self.0.insert(path, file);
    }

    /// Notes that no stat proves the path's content on record.
    pub(crate) fn forget(&mut self, path: &RelPath) {
        let Some(file) = self.0.get_mut(path).filter(|file| file.is_proof) else {
            return;
        };
        file.is_proof = false;
        file.inode = false;
        if !file.watched {
            self.0.remove(path);
        }
    }

    /// Drops the stats of paths whose content a fact changes, since it was not
    /// read with these stats.
    pub(crate) fn recorded(&mut self, record: &Record) {
        match &record.fact {
            Fact::Baseline { path, .. } | Fact::CopyDropped { path } => self.forget(path),
            Fact::Version(version) => self.forget(&version.path),
            Fact::NamesJoined { name, .. } => self.forget(name),
            Fact::NamesParted { file, leaving } => {
                self.forget(file);
                leaving.iter().for_each(|name| self.forget(name));
            }
            _ => {}
        }
    }
}

impl FromIterator<(RelPath, Stamp)> for Files {
    fn from_iter<I: IntoIterator<Item = (RelPath, Stamp)>>(stamps: I) -> Self {
        let mut files = Self::default();
        for (path, stamp) in stamps {
            files.insert(path, stamp);
        }
        files
    }
}

impl PartialEq for Files {
    fn eq(&self, other: &Self) -> bool {
        self.proven().eq(other.proven())
    }
}

impl Eq for Files {}
