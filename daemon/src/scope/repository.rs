//! The contents of a repository's files as git's index and objects record them
//! (SCOPE-3). Both may have been part of a clone. They are read only if the
//! user owns them, and what cannot be read proves nothing.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use filetime::FileTime;
use gix_index::hash::{Kind, ObjectId};
use gix_index::{State, decode, entry};

use super::index::Stat;
use crate::git::files::{branch, directories, line, read};

/// The largest index that is read, in bytes.
const MOST_INDEX: u64 = 256 << 20;

const SECOND: i64 = 1_000_000_000;

/// A repository whose top directory is in the workspace, or above it.
pub(super) struct Repository {
    /// The directory to which its `.git` resolves: what belongs to this work
    /// tree alone.
    own: PathBuf,
    /// The directory that it shares with other work trees.
    common: PathBuf,
    /// The path of the workspace in it, with a slash at the end; empty if its
    /// top directory is in the workspace.
    prefix: Vec<u8>,
    index: Option<(Stamp, State)>,
    objects: Option<gix_odb::Handle>,
}

type Stamp = (u64, i64, i64);

impl Repository {
    /// Opens the repository with that top directory.
    pub(super) fn at(top: &Path, prefix: Vec<u8>) -> Option<Self> {
        let (own, common) = directories(top)?;
        Some(Self {
            own,
            common,
            prefix,
            index: None,
            objects: None,
        })
    }

    /// Returns the name of the current branch, or the first digits of the
    /// commit.
    pub(super) fn branch(&self) -> Option<String> {
        let head = line(&self.own.join("HEAD"))?;
        Some(branch(&head).unwrap_or_else(|| head.chars().take(12).collect()))
    }

    /// Reads the index again if it has changed. Returns whether it has.
    pub(super) fn refresh(&mut self) -> bool {
        let path = self.own.join("index");
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
        self.index = stamp.and_then(|stamp| {
            let read = read_index(&path, stamp.1);
            let read = read.inspect_err(|error| tracing::debug!("{}: {error}", path.display()));
            Some((stamp, read.ok()?))
        });
        true
    }

    /// Returns the blob whose content a file with this stat has, if the index
    /// proves that. `name` is relative to the repository's top, or to the
    /// workspace if the workspace is below that top.
    pub(super) fn vouches(&self, name: &[u8], stat: &Stat) -> Option<ObjectId> {
        let (_, index) = self.index.as_ref()?;
        let name = [self.prefix.as_slice(), name].concat();
        let entry = index.entry_by_path(name.as_slice().into())?;
        let odd = entry::Flags::SKIP_WORKTREE | entry::Flags::INTENT_TO_ADD;
        let kinds: &[entry::Mode] = match stat.is_link() {
            true => &[entry::Mode::SYMLINK],
            false => &[entry::Mode::FILE, entry::Mode::FILE_EXECUTABLE],
        };
        if !kinds.contains(&entry.mode) || entry.flags.intersects(odd) {
            return None;
        }
        let known = &entry.stat;
        // Git stores the lower halves of these numbers.
        #[allow(clippy::cast_possible_truncation)]
        let the_same = known.size == stat.size as u32
            && known.ino == stat.inode as u32
            && is_time(known.mtime, stat.modified)
            && is_time(known.ctime, stat.changed);
        let racy = known.is_racy(index.timestamp(), entry::stat::Options::default());
        (the_same && !racy).then_some(entry.id)
    }

    /// Returns the content of a blob, if it is as long as the file was.
    /// Otherwise a filter of git's has changed it (SCOPE-3).
    pub(super) fn blob(&mut self, id: ObjectId, size: u64) -> Option<Vec<u8>> {
        use gix_odb::pack::Find as _;
        if self.objects.is_none() {
            let objects = gix_odb::at(self.common.join("objects"), id.kind());
            self.objects = Some(objects.ok()?);
        }
        let objects = self.objects.as_ref()?;
        let mut bytes = Vec::new();
        let (found, _) = objects.try_find(&id, &mut bytes).ok()??;
        let whole = found.data.len() as u64 == size;
        whole.then_some(bytes)
    }
}

/// The names in the indexes of the workspace's repositories. Several threads
/// use it.
#[derive(Default)]
pub(super) struct Tracked<'a> {
    /// By the paths of their top directories.
    indexes: HashMap<&'a [u8], (&'a [u8], &'a State)>,
    /// An index was read since the last sweep.
    pub(super) have_changed: bool,
}

impl<'a> Tracked<'a> {
    pub(super) fn new(
        repositories: impl Iterator<Item = (&'a [u8], &'a Repository)>,
        have_changed: bool,
    ) -> Self {
        let indexes = repositories.filter_map(|(top, repository)| {
            let (_, index) = repository.index.as_ref()?;
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
        if index.entry_by_path(name.as_slice().into()).is_some() {
            return true;
        }
        name.push(b'/');
        is_directory
            && index
                .prefixed_entries_range(name.as_slice().into())
                .is_some()
    }
}

/// Returns whether a time of an index equals that of a stat. An index may have
/// whole seconds only.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn is_time(known: entry::stat::Time, time: i64) -> bool {
    let (seconds, rest) = (time.div_euclid(SECOND), time.rem_euclid(SECOND));
    known.secs == seconds as u32 && (known.nsecs == rest as u32 || known.nsecs == 0)
}

fn read_index(path: &Path, modified: i64) -> io::Result<State> {
    let bytes = read(path, MOST_INDEX)?;
    let time = filetime(modified);
    let decoded = [Kind::Sha1, Kind::Sha256].into_iter().find_map(|kind| {
        let decoded = State::from_bytes(&bytes, time, kind, decode::Options::default());
        decoded.ok()
    });
    let (state, _) = decoded.ok_or_else(|| io::Error::other("not understood"))?;
    Ok(state)
}

fn filetime(modified: i64) -> FileTime {
    let rest = u32::try_from(modified.rem_euclid(SECOND)).unwrap_or_default();
    FileTime::from_unix_time(modified.div_euclid(SECOND), rest)
}
