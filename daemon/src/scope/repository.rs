//! The contents of a repository's files as git's index and objects record them
//! (SCOPE-3). What cannot be read proves nothing.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use touchmark_proto::Places;

use super::index::Stat;
use crate::content::MAX_BYTES;
use crate::git::files::{branch, line};
use crate::git::index::{Entry as IndexEntry, GitIndex, ObjectId};
use crate::git::{Limits, Object, Objects, WorkTree};

/// How long git may take for one object, and for all objects of a sweep. A
/// command waits for them.
const OBJECT: Duration = Duration::from_secs(1);
const OBJECTS: Duration = Duration::from_secs(10);

const SECOND: i64 = 1_000_000_000;

/// The modes of files and links in an index.
const FILES: [u32; 2] = [0o100_644, 0o100_755];
const LINK: u32 = 0o120_000;

/// A repository whose top directory is in the workspace, or above it.
pub(super) struct Repository {
    tree: WorkTree,
    /// The path of the workspace in it, with a slash at the end; empty if its
    /// top directory is in the workspace.
    prefix: Vec<u8>,
    /// `None` in it if the index was not understood.
    index: Option<(Stamp, Option<GitIndex>)>,
    objects: Contents,
}

/// Where contents come from.
enum Contents {
    /// None was needed yet in this sweep.
    Closed,
    Open(Objects),
    /// Git has not answered in time. It is not asked again in this sweep.
    Failed,
}

type Stamp = (u64, i64, i64);

impl Repository {
    /// Opens the repository with that top directory.
    pub(super) fn at(top: &Path, prefix: Vec<u8>, places: &Places) -> Option<Self> {
        Some(Self {
            tree: WorkTree::at(top, places)?,
            prefix,
            index: None,
            objects: Contents::Closed,
        })
    }

    /// Returns the name of the current branch, or the first digits of the
    /// commit.
    pub(super) fn branch(&self) -> Option<String> {
        let head = line(&self.tree.own.join("HEAD"))?;
        Some(branch(&head).unwrap_or_else(|| head.chars().take(12).collect()))
    }

    /// Reads the index again if it has changed. Returns whether it has.
    pub(super) fn refresh(&mut self) -> bool {
        let path = self.tree.own.join("index");
        let stamp = path.symlink_metadata().ok().map(|found| {
            use std::os::unix::fs::MetadataExt as _;
            let time = |seconds: i64, rest: i64| seconds * SECOND + rest;
            (
                found.ino(),
                time(found.mtime(), found.mtime_nsec()),
                time(found.ctime(), found.ctime_nsec()),
            )
        });
        if self.index.as_ref().map(|(stamp, _)| *stamp) == stamp {
            return false;
        }
        self.index = stamp.map(|stamp| {
            let read = GitIndex::read(&path);
            let read = read.inspect_err(|error| tracing::debug!("{}: {error}", path.display()));
            (stamp, read.ok())
        });
        true
    }

    /// Returns the blob whose content a file with this stat has, if the index
    /// proves that. `name` is relative to the repository's top, or to the
    /// workspace if the workspace is below that top.
    pub(super) fn vouches(&self, name: &[u8], stat: &Stat) -> Option<ObjectId> {
        let ((_, written, _), _) = self.index.as_ref()?;
        let entry = self.entry(name, stat)?;
        // The file may have changed in the second in which the index was
        // written (a racy entry).
        let is_racy = i64::from(entry.modified.0) >= written.div_euclid(SECOND);
        (!is_racy).then_some(entry.id)
    }

    /// Returns whether the index has a file with this stat. A racy entry proves
    /// no content.
    pub(super) fn names(&self, name: &[u8], stat: &Stat) -> bool {
        self.entry(name, stat).is_some()
    }

    /// Returns the index's entry of a file, if it has this stat.
    fn entry(&self, name: &[u8], stat: &Stat) -> Option<&IndexEntry> {
        let (_, index) = self.index.as_ref()?;
        let name = [self.prefix.as_slice(), name].concat();
        let entry = index.as_ref()?.entry_of(&name)?;
        let is_kind = match stat.is_link() {
            true => entry.mode == LINK,
            false => FILES.contains(&entry.mode),
        };
        // Git stores the lower halves of these numbers.
        #[allow(clippy::cast_possible_truncation)]
        let the_same = entry.size == stat.size as u32
            && entry.inode == stat.inode as u32
            && is_time(entry.modified, stat.modified)
            && is_time(entry.changed, stat.changed);
        (is_kind && entry.is_plain() && the_same).then_some(entry)
    }

    /// Returns the content of a blob, if it is as long as the file was.
    /// Otherwise a filter of git's has changed it (SCOPE-3).
    pub(super) fn blob(&mut self, id: ObjectId, size: u64) -> Option<Vec<u8>> {
        if matches!(self.objects, Contents::Closed) {
            let limits = Limits {
                bytes: MAX_BYTES,
                time: OBJECT,
                all: OBJECTS,
            };
            let opened = Objects::open(&self.tree, &self.tree.top, limits);
            self.objects = match opened {
                Some(objects) => Contents::Open(objects),
                None => Contents::Failed,
            };
        }
        let objects = match &mut self.objects {
            Contents::Open(objects) => objects,
            _ => return None,
        };
        match objects.object(id.digits().as_bytes()) {
            Some(Object::Whole(_, bytes)) => (bytes.len() as u64 == size).then_some(bytes),
            Some(_) => None,
            None => {
                self.objects = Contents::Failed;
                None
            }
        }
    }

    /// Ends git, which was started for contents.
    pub(super) fn close(&mut self) {
        self.objects = Contents::Closed;
    }
}

/// The names in the indexes of the workspace's repositories. Several threads
/// use it.
#[derive(Default)]
pub(super) struct Tracked<'a> {
    /// By the paths of their top directories.
    indexes: HashMap<&'a [u8], (&'a [u8], &'a GitIndex)>,
    /// An index was read since the last sweep.
    pub(super) have_changed: bool,
}

impl<'a> Tracked<'a> {
    pub(super) fn new(
        repositories: impl Iterator<Item = (&'a [u8], &'a Repository)>,
        have_changed: bool,
    ) -> Self {
        let indexes = repositories.filter_map(|(top, repository)| {
            let index = repository.index.as_ref()?.1.as_ref()?;
            Some((top, (repository.prefix.as_slice(), index)))
        });
        Self {
            indexes: indexes.collect(),
            have_changed,
        }
    }

    /// Returns whether the index of its repository has a path, or one below it.
    pub(super) fn have(&self, path: &[u8], is_directory: bool) -> bool {
        let slashes = path.iter().enumerate().rev();
        let mut tops = slashes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let inner = tops.find(|at| self.indexes.contains_key(&path[..*at]));
        let (top, name) = match inner {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => ([].as_slice(), path),
        };
        let Some((prefix, index)) = self.indexes.get(top) else {
            return false;
        };
        let mut name = [prefix, name].concat();
        if index.entry_of(&name).is_some() {
            return true;
        }
        name.push(b'/');
        is_directory && index.has_below(&name)
    }
}

/// Returns whether a time of an index equals that of a stat. An index may have
/// whole seconds only.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn is_time((seconds, nanoseconds): (u32, u32), time: i64) -> bool {
    let (whole, rest) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
    seconds == whole as u32 && (nanoseconds == rest as u32 || nanoseconds == 0)
}
