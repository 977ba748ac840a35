//! One repository, and what is cached of it.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use filetime::FileTime;
use gix_index::hash::{Kind as HashKind, ObjectId};
use gix_index::{State, decode, entry};
use touchmark_proto::native;

use super::blobs::{Blobs, Changed, Nanos, written};
use super::moves::{self, Move};
use super::stashes::Stashes;
use crate::git::files::{directories, read};
use crate::git::{Object, Objects};
use crate::system::stat::MetadataExt as _;

/// How long a git process that holds the index is waited for. A version is
/// looked at while the command that wrote it may not have ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long git may take from releasing the index to the end.
const LAST: Duration = Duration::from_millis(50);

/// How often it is looked whether that process has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The most moves whose files are remembered.
const MOST_MOVES: usize = 8;

/// The most files of moves that are remembered between the batches of looks.
const MOST_KEPT: usize = 10_000;

/// The most moves of `HEAD` that are remembered.
const MOST_LOGGED: usize = 64;

/// The largest index that is read, in bytes.
const MOST_INDEX: u64 = 256 << 20;

/// The largest configuration that is read, in bytes.
const MOST_CONFIG: u64 = 256 << 10;

/// A repository, as far as it was looked at.
pub(super) struct Place {
    /// The top directory of its work tree.
    pub(super) top: PathBuf,
    /// What belongs to this work tree alone.
    own: PathBuf,
    /// What it shares with other work trees.
    common: PathBuf,
    pub(super) hash: HashKind,
    pub(super) blobs: Blobs,
    pub(super) stashes: Stashes,
    /// The moves of `HEAD`, oldest first.
    pub(super) moves: Vec<Move>,
    /// What tells one state of the log of `HEAD` from another.
    logged: Option<(u64, Nanos)>,
    /// The files that the newest moves changed, by the commits before and
    /// after.
    changed: VecDeque<((String, String), Option<Arc<Changed>>)>,
    index: Option<(Nanos, Option<State>)>,
    /// A git process that prints objects; it ends after each batch of looks.
    objects: Option<Objects>,
    /// Whether [`settle`](Self::settle) has waited in this batch of looks.
    has_settled: bool,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place").field(&self.top).finish()
    }
}

impl Place {
    /// Opens the repository with that top directory. `None` unless its git
    /// directory belongs to this user (SEC-6).
    pub(super) fn at(top: &Path) -> Option<Self> {
        let (own, common) = directories(top)?;
        let config = read(&common.join("config"), MOST_CONFIG).unwrap_or_default();
        let config = String::from_utf8_lossy(&config).to_lowercase();
        let is_sha256 = config
            .lines()
            .filter_map(|line| line.split_once('='))
            .any(|(key, value)| key.trim() == "objectformat" && value.trim() == "sha256");
        Some(Self {
            top: top.to_owned(),
            blobs: Blobs::of(&common),
            own,
            common,
            hash: match is_sha256 {
                true => HashKind::Sha256,
                false => HashKind::Sha1,
            },
            stashes: Stashes::default(),
            moves: Vec::new(),
            logged: None,
            changed: VecDeque::new(),
            index: None,
            objects: None,
            has_settled: false,
        })
    }

    /// Waits until no git process holds the index, and reads again what has
    /// changed.
    pub(super) fn refresh(&mut self) {
        let lock = self.own.join("index.lock");
        let begun = Instant::now();
        while lock.symlink_metadata().is_ok() && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        self.stashes.note(&self.common);
        let found = self.own.join("logs/HEAD").symlink_metadata().ok();
        let logged = found.map(|found| (found.len(), written(&found)));
        if logged != self.logged {
            self.logged = logged;
            self.moves = moves::moves(&self.own);
            let surplus = self.moves.len().saturating_sub(MOST_LOGGED);
            self.moves.drain(..surplus);
            self.moves.shrink_to_fit();
        }
    }

    /// Waits once in a batch of looks for what git writes last: the log of
    /// `HEAD`, after it has released the index.
    pub(super) fn settle(&mut self) {
        let waits = !std::mem::replace(&mut self.has_settled, true);
        if waits {
            std::thread::sleep(LAST);
            self.refresh();
        }
    }

    /// Ends what is only needed while versions are looked at.
    pub(super) fn rest(&mut self) {
        self.objects = None;
        self.index = None;
        let files = self.changed.iter().flat_map(|(_, changed)| changed);
        if files.map(|changed| changed.len()).sum::<usize>() > MOST_KEPT {
            self.changed.clear();
        }
        self.has_settled = false;
    }

    /// Returns which files a move changed.
    pub(super) fn changed(&mut self, of: &Move) -> Option<Arc<Changed>> {
        let name = (of.before.clone()?, of.id.clone());
        if name.0 == name.1 {
            return None;
        }
        if let Some((_, known)) = self.changed.iter().find(|(known, _)| *known == name) {
            return known.clone();
        }
        let found = of.changed(&self.top).map(Arc::new);
        if self.changed.len() == MOST_MOVES {
            self.changed.pop_front();
        }
        self.changed.push_back((name, found.clone()));
        found
    }

    /// Returns whether the last move of `HEAD` was logged before this time.
    pub(super) fn is_logged_before(&self, time: Nanos) -> bool {
        self.logged.is_none_or(|(_, logged)| logged < time)
    }

    /// Returns whether an operation of several steps is in progress that takes
    /// files from one whole state to another.
    pub(super) fn is_between(&self) -> bool {
        let signs = [
            "MERGE_HEAD",
            "CHERRY_PICK_HEAD",
            "rebase-merge",
            "rebase-apply",
        ];
        let mut signs = signs.iter();
        signs.any(|sign| self.own.join(sign).symlink_metadata().is_ok())
    }

    /// Returns the blob and the content that a commit or a tree has at a path.
    pub(super) fn blob_at(&mut self, tree: &str, path: &[u8]) -> Option<(ObjectId, Vec<u8>)> {
        self.object(&[tree.as_bytes(), b":", path].concat())
    }

    /// Returns a blob's content.
    pub(super) fn blob(&mut self, id: &ObjectId) -> Option<(ObjectId, Vec<u8>)> {
        self.object(id.to_string().as_bytes())
    }

    fn object(&mut self, name: &[u8]) -> Option<(ObjectId, Vec<u8>)> {
        if self.objects.is_none() {
            self.objects = Objects::open(&self.top);
        }
        match self.objects.as_mut()?.object(name)? {
            Object::Whole(id, bytes) => Some((ObjectId::from_hex(id.as_bytes()).ok()?, bytes)),
            _ => None,
        }
    }

    /// Returns whether git's last merge wrote this blob at the path.
    pub(super) fn is_merged(&mut self, path: &[u8], id: &ObjectId) -> bool {
        self.own.join("AUTO_MERGE").symlink_metadata().is_ok()
            && self
                .blob_at("AUTO_MERGE", path)
                .is_some_and(|(own, _)| own == *id)
    }

    /// Returns the blob of the index at a path; `None` if there is none, or an
    /// unmerged one.
    pub(super) fn in_index(&mut self, path: &[u8]) -> Option<ObjectId> {
        Some(self.index()?.entry_by_path(path.into())?.id)
    }

    /// Returns the blob of the index at a path if the index proves that the
    /// file is unchanged since, whatever filters have made of the content.
    pub(super) fn clean_blob(&mut self, path: &[u8], found: &Metadata) -> Option<ObjectId> {
        let index = self.index()?;
        let entry = index.entry_by_path(path.into())?;
        let known = &entry.stat;
        let is_time = |known: entry::stat::Time, seconds: i64, rest: i64| {
            i64::from(known.secs) == (seconds & 0xffff_ffff)
                && (i64::from(known.nsecs) == rest || known.nsecs == 0)
        };
        let the_same = u64::from(known.size) == (found.len() & 0xffff_ffff)
            && u64::from(known.ino) == (found.ino() & 0xffff_ffff)
            && is_time(known.mtime, found.mtime(), found.mtime_nsec())
            && is_time(known.ctime, found.ctime(), found.ctime_nsec());
        let racy = known.is_racy(index.timestamp(), entry::stat::Options::default());
        (the_same && !racy).then_some(entry.id)
    }

    /// Returns the index, which is read again if it has changed.
    fn index(&mut self) -> Option<&State> {
        let file = self.own.join("index");
        let found = file.symlink_metadata().ok()?;
        let stamp = written(&found);
        if self.index.as_ref().is_none_or(|(known, _)| *known != stamp) {
            let modified = FileTime::from_last_modification_time(&found);
            let bytes = read(&file, MOST_INDEX).ok();
            let state = bytes.and_then(|bytes| {
                let options = decode::Options::default();
                let decoded = State::from_bytes(&bytes, modified, self.hash, options);
                Some(decoded.ok()?.0)
            });
            self.index = Some((stamp, state));
        }
        self.index.as_ref()?.1.as_ref()
    }
}

/// Returns the top directory of the repository that a file is in, and the
/// file's path in it. It may be above the workspace.
pub(super) fn top_of(file: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let above = file.ancestors().skip(1);
    let top = above
        .take_while(|above| above.file_name().is_none_or(|name| name != ".git"))
        .find(|above| above.join(".git").symlink_metadata().is_ok())?;
    let path = file.strip_prefix(top).ok()?;
    Some((top.to_owned(), native::bytes(path).into_owned()))
}
