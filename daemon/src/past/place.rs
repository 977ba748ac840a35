//! One repository, and what is cached of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::Metadata;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use touchmark_proto::{Hash, Places, native};

use super::blobs::{Blobs, Nanos, SECOND, written};
use super::converted::converted;
use super::moves::{self, Changed, Timed};
use super::stashes::Stashes;
use crate::git::files::Configured;
use crate::git::index::{Entry, GitIndex, ObjectId};
use crate::git::reflog::{self, Move};
use crate::git::waiting::Waiting;
use crate::git::{Limits, Object, Objects, WorkTree};
use crate::system::stat::MetadataExt as _;

/// How old the lock of an index is at which the process that made it has ended
/// without removing it. It may have come with the repository, too.
const ABANDONED: Duration = Duration::from_secs(120);

/// How often it is looked whether that process has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The most moves whose files are remembered.
const MOST_MOVES: usize = 8;

/// The most files of moves that are remembered between the batches of looks.
const MOST_KEPT: usize = 10_000;

/// How long before a content is written git may have stored the stash that it
/// is about.
pub(super) const AROUND: Nanos = 10 * SECOND;

/// The most moves of `HEAD` that are remembered.
const MOST_LOGGED: usize = 64;

/// The largest object that is read, in bytes.
const MOST_OBJECT: u64 = 64 << 20;

/// How long git may take for the objects of one batch of looks.
const ALL_OBJECTS: Duration = Duration::from_secs(120);

/// The most bytes of the log of `HEAD` that are read.
const MOST_LOG: u64 = 1 << 20;

/// The commits of stashes, each with the time when git made it.
type Made = Arc<[(Nanos, String)]>;

/// The commits before and after a move of `HEAD`.
type Ends = (String, String);

/// A repository, as far as it was looked at.
pub(super) struct Place {
    tree: WorkTree,
    /// Whether objects are named by SHA-256, in place of SHA-1.
    is_sha256: bool,
    pub(super) blobs: Blobs,
    pub(super) stashes: Stashes,
    /// The moves of `HEAD`, oldest first.
    pub(super) moves: Vec<Timed>,
    /// What tells one state of the log of `HEAD` from another.
    logged: Option<(u64, Nanos)>,
    /// The files that the newest moves changed, by the commits before and
    /// after.
    changed: VecDeque<(Ends, Option<Arc<Changed>>)>,
    /// Which blobs filters have made of contents, by path and content.
    filtered: HashMap<(Vec<u8>, Hash), ObjectId>,
    /// What an operation has brought that waited for the user: the paths with
    /// their blobs. `HEAD` was not moved since.
    waiting: HashSet<(Vec<u8>, ObjectId)>,
    /// The versions that git was found to have brought. Those of one batch of
    /// looks are not in the log yet.
    brought: HashSet<u64>,
    /// When the index was written, and the index if it was understood.
    index: Option<(Nanos, Option<GitIndex>)>,
    /// A git process that prints objects; it ends after each batch of looks.
    objects: Option<Objects>,
    /// Whether it was [`unsettled`](Self::unsettled) in this batch of looks.
    has_settled: bool,
    /// The span of time in which stashes were searched in this batch, and those
    /// that git made in it.
    searched: Option<(RangeInclusive<Nanos>, Made)>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place").field(&self.tree.top).finish()
    }
}

impl Place {
    /// Opens the repository with that top directory. `None` unless it is trusted
    /// (SEC-6).
    pub(super) fn at(top: &Path, places: &Places) -> Option<Self> {
        let tree = WorkTree::at(top, places)?;
        let configured = Configured::read(&tree.common);
        Some(Self {
            blobs: Blobs::of(&tree.common),
            is_sha256: configured.value("extensions", "objectformat") == Some("sha256"),
            tree,
            stashes: Stashes::default(),
            moves: Vec::new(),
            logged: None,
            changed: VecDeque::new(),
            filtered: HashMap::new(),
            waiting: HashSet::new(),
            brought: HashSet::new(),
            index: None,
            objects: None,
            has_settled: false,
            searched: None,
        })
    }

    /// Waits until no git process holds the index, but not beyond `until`, and
    /// reads again what has changed.
    pub(super) fn refresh(&mut self, until: Instant) {
        let lock = self.tree.own.join("index.lock");
        while is_held(&lock, SystemTime::now()) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
        self.stashes.note(&self.tree.common);
        let log = self.tree.own.join("logs/HEAD");
        let stamp = || {
            let found = log.symlink_metadata().ok()?;
            Some((found.len(), written(&found)))
        };
        let logged = stamp();
        if logged != self.logged {
            let mut found = reflog::moves_in(&log, MOST_LOG);
            found.drain(..found.len().saturating_sub(MOST_LOGGED));
            // Git may have written a move since the first look at the stamp.
            let changed = stamp().map_or(0, |(_, time)| time);
            let blobs = &self.blobs;
            let last = moves::last(&self.moves).cloned();
            self.moves = moves::timed(&self.moves, found, changed, |one| blobs.made(one));
            if moves::last(&self.moves) != last.as_ref() {
                self.waiting.clear();
            }
            self.logged = logged;
        }
    }

    /// Returns this place once in a batch of looks.
    pub(super) fn unsettled(&mut self) -> Option<&mut Self> {
        let is_first = !std::mem::replace(&mut self.has_settled, true);
        is_first.then_some(self)
    }

    /// Returns whether a git process prints objects.
    pub(super) fn runs_git(&self) -> bool {
        self.objects.is_some()
    }

    /// Ends the git process that prints objects. The next one that is needed
    /// starts another.
    pub(super) fn end_git(&mut self) {
        self.objects = None;
    }

    /// Ends what is only needed while versions are looked at.
    pub(super) fn rest(&mut self) {
        self.objects = None;
        self.index = None;
        let files = self.changed.iter().flat_map(|(_, changed)| changed);
        if files.map(|changed| changed.len()).sum::<usize>() > MOST_KEPT {
            self.changed.clear();
        }
        if self.filtered.len() > MOST_KEPT {
            self.filtered.clear();
        }
        if self.waiting.len() > MOST_KEPT {
            self.waiting.clear();
        }
        if self.brought.len() > MOST_KEPT {
            self.brought.clear();
        }
        self.has_settled = false;
        self.searched = None;
    }

    /// Notes a version that git was found to have brought.
    pub(super) fn note_brought(&mut self, version: u64) {
        self.brought.insert(version);
    }

    /// Returns the versions that git was found to have brought.
    pub(super) fn brought(&self) -> &HashSet<u64> {
        &self.brought
    }

    /// Returns whether git made a stash in this span of time.
    pub(super) fn has_stashed(&mut self, from: Nanos, to: Nanos) -> bool {
        !self.stashes_between(from, to).is_empty()
    }

    /// Remembers the stashes that git made in this span of time, also those that
    /// it does not list, and returns them, the oldest first.
    pub(super) fn stashes_between(&mut self, from: Nanos, to: Nanos) -> Vec<String> {
        let found = self.stashes_since(from, to);
        let within = found.iter().rev();
        let within = within.filter(|(time, _)| (from..=to).contains(time));
        let within: Vec<String> = within.map(|(_, id)| id.clone()).collect();
        for id in &within {
            self.stashes.remember(id.clone());
        }
        within
    }

    /// Returns the stashes that git has made since a time, with the time of each,
    /// the newest first. They are searched once in a batch, up to the present:
    /// each version has a later time than the one before it.
    fn stashes_since(&mut self, from: Nanos, to: Nanos) -> Made {
        let is_known = |span: &RangeInclusive<Nanos>| span.contains(&from) && span.contains(&to);
        if let Some((_, found)) = self.searched.as_ref().filter(|(span, _)| is_known(span)) {
            return Arc::clone(found);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(to, |now| Nanos::try_from(now.as_nanos()).unwrap_or(to));
        let span = from..=now.max(to);
        let mut stored = self.blobs.stored(&span);
        stored.retain(|(_, id)| self.is_stash(id));
        let found = stored.into_iter().map(|(time, id)| (time, id.digits()));
        let found: Made = found.collect();
        self.searched = Some((span, Arc::clone(&found)));
        found
    }

    /// Returns whether an object is a commit as `git stash` makes it: a merge of
    /// the commit before and one of the index.
    fn is_stash(&mut self, id: &ObjectId) -> bool {
        let Some((_, bytes)) = self.object(id.digits().as_bytes()) else {
            return false;
        };
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let is_commit = lines.next().is_some_and(|line| line.starts_with(b"tree "));
        let is_parent = |line: &&[u8]| line.starts_with(b"parent ");
        let parents = lines.by_ref().take_while(is_parent).count();
        let mut message = lines.skip_while(|line| !line.is_empty()).skip(1);
        let is_named = |line: &[u8]| line.starts_with(b"On ") || line.starts_with(b"WIP on ");
        is_commit && (2..=3).contains(&parents) && message.next().is_some_and(is_named)
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
        let found = moves::changed(&self.tree, of).map(Arc::new);
        if self.changed.len() == MOST_MOVES {
            self.changed.pop_front();
        }
        self.changed.push_back((name, found.clone()));
        found
    }

    /// Returns whether an operation of several steps is in progress that takes
    /// files from one whole state to another.
    pub(super) fn is_between(&self) -> bool {
        let waiting = self.tree.waiting();
        waiting.is_some_and(|operation| operation != Waiting::Revert)
    }

    /// Notes what an operation has brought that waits for the user.
    pub(super) fn waits_with(&mut self, path: &[u8], id: ObjectId) {
        self.waiting.insert((path.to_owned(), id));
    }

    /// Returns whether an operation that waited for the user was called off, so
    /// that a file went from the blob that it had brought (`old`) to that of
    /// `HEAD`; `None` for no file. `git merge --abort` logs a reset, and `HEAD`
    /// stays where it is.
    pub(super) fn calls_off(&mut self, path: &[u8], old: ObjectId, new: Option<ObjectId>) -> bool {
        if !self.waiting.contains(&(path.to_owned(), old)) || self.is_between() {
            return false;
        }
        // Git must be able to tell what `HEAD` does not have. It moves `HEAD`
        // before it logs that.
        let head = self.object(b"HEAD").map(|(id, _)| id.digits());
        let is_there = head.is_some_and(|head| {
            let last = moves::last(&self.moves);
            last.is_none_or(|one| one.id == head)
        });
        is_there && self.blob_at("HEAD", path).map(|(id, _)| id) == new
    }

    /// Returns whether a revert has stopped in the middle, or has ended since
    /// that time.
    pub(super) fn is_reverted(&self, time: Nanos) -> bool {
        let mut since = self.moves.iter().filter(|one| one.logged >= time);
        self.tree.waiting() == Some(Waiting::Revert)
            || since.any(|one| one.of.why.starts_with("revert:"))
    }

    /// Returns when git had last written what it merged. It leaves the
    /// name of that there also after a revert or a cherry-pick that is done.
    fn merged(&self) -> Option<Nanos> {
        let found = self.tree.own.join("AUTO_MERGE").symlink_metadata();
        Some(written(&found.ok()?))
    }

    /// Returns whether git has merged what was written at that time, and it is
    /// not known yet for which operation.
    pub(super) fn is_merging(&self, time: Nanos) -> bool {
        self.merged().is_some_and(|merged| time <= merged) && self.tree.waiting().is_none()
    }

    /// Returns whether git had an object before that time.
    pub(super) fn is_stored(&mut self, id: &ObjectId, time: Nanos) -> bool {
        let stored = self.blobs.since(id, time);
        stored.is_some_and(|stored| stored < time)
    }

    /// Returns the id that git gives to this content here, as it stores it.
    pub(super) fn id_of(&mut self, path: &[u8], bytes: &[u8]) -> ObjectId {
        let mut ids = self.own_ids(bytes);
        let raw = ids[0];
        if !self.filtered.is_empty() {
            ids.extend(self.paired(path, &Hash::of(bytes)));
        }
        if ids.len() == 1 {
            return raw;
        }
        let is_stored = |id: &ObjectId| self.blobs.since(id, Nanos::MAX).is_some();
        ids.into_iter().find(is_stored).unwrap_or(raw)
    }

    fn raw_id(&self, bytes: &[u8]) -> ObjectId {
        ObjectId::of_file(self.is_sha256, bytes)
    }

    /// Returns the ids that git gives to this content without a filter: of its
    /// bytes, and of what git makes of them itself.
    pub(super) fn own_ids(&self, bytes: &[u8]) -> Vec<ObjectId> {
        let mut ids = vec![self.raw_id(bytes)];
        ids.extend(converted(bytes).iter().map(|one| self.raw_id(one)));
        ids
    }

    /// Returns the blob that a filter has made of a content; `None` if that is
    /// not known.
    pub(super) fn paired(&self, path: &[u8], hash: &Hash) -> Option<ObjectId> {
        if self.filtered.is_empty() {
            return None;
        }
        self.filtered.get(&(path.to_owned(), *hash)).copied()
    }

    /// Returns whether a stash was made or dropped around that time.
    pub(super) fn is_stashing(&mut self, time: Nanos) -> bool {
        let changed = self.stashes.changed();
        changed.is_some_and(|changed| (changed - time).abs() <= AROUND)
            || self.has_stashed(time - AROUND, time)
    }

    /// Remembers which blob a filter has made of a content.
    pub(super) fn pair(&mut self, path: &[u8], hash: Hash, id: ObjectId) {
        self.filtered.insert((path.to_owned(), hash), id);
    }

    /// Returns the blob of the index if the index proves that the file is
    /// unchanged since, and a filter makes another content of it than git has:
    /// none of its `own` ids. It is remembered.
    pub(super) fn filtered_blob(
        &mut self,
        path: &[u8],
        found: &Metadata,
        hash: Hash,
        own: &[ObjectId],
    ) -> Option<ObjectId> {
        let id = self.clean_blob(path, found)?;
        if own.contains(&id) {
            return None;
        }
        self.pair(path, hash, id);
        Some(id)
    }

    /// Returns the blob and the content that a commit or a tree has at a path.
    pub(super) fn blob_at(&mut self, tree: &str, path: &[u8]) -> Option<(ObjectId, Vec<u8>)> {
        self.object(&[tree.as_bytes(), b":", path].concat())
    }

    /// Returns a blob's content.
    pub(super) fn blob(&mut self, id: &ObjectId) -> Option<(ObjectId, Vec<u8>)> {
        self.object(id.digits().as_bytes())
    }

    fn object(&mut self, name: &[u8]) -> Option<(ObjectId, Vec<u8>)> {
        if self.objects.is_none() {
            let limits = Limits {
                bytes: MOST_OBJECT,
                all: ALL_OBJECTS,
                ..Limits::default()
            };
            self.objects = Objects::open(&self.tree, &self.tree.top, limits);
        }
        match self.objects.as_mut()?.object(name)? {
            Object::Whole(id, bytes) => Some((ObjectId::from_digits(&id)?, bytes)),
            _ => None,
        }
    }

    /// Returns whether git's last merge wrote this blob at the path. `time` is
    /// when the file was written: if that was after the merge, someone else wrote
    /// it.
    pub(super) fn is_merged(&mut self, path: &[u8], id: &ObjectId, time: Nanos) -> bool {
        self.merged().is_some_and(|merged| time <= merged)
            && self
                .blob_at("AUTO_MERGE", path)
                .is_some_and(|(own, _)| own == *id)
    }

    /// Returns the blob of the index at a path; `None` if there is none, or an
    /// unmerged one.
    pub(super) fn in_index(&mut self, path: &[u8]) -> Option<ObjectId> {
        Some(self.entry(path)?.1.id)
    }

    /// Returns whether a sparse checkout leaves a file out that had this blob.
    pub(super) fn is_left_out(&mut self, path: &[u8], id: &ObjectId) -> bool {
        let entry = self.any_entry(path);
        entry.is_some_and(|(_, entry)| entry.is_skipped() && entry.id == *id)
    }

    /// Returns whether a sparse checkout has brought this blob: it was set, or
    /// ended, since that time, and `HEAD` has the blob.
    pub(super) fn is_taken_in(&mut self, path: &[u8], id: &ObjectId, since: Nanos) -> bool {
        let set = ["info/sparse-checkout", "config.worktree"];
        let mut set = set.iter().filter_map(|file| {
            let found = self.tree.own.join(file).symlink_metadata();
            Some(written(&found.ok()?))
        });
        set.any(|time| time >= since)
            && self
                .blob_at("HEAD", path)
                .is_some_and(|(own, _)| own == *id)
    }

    /// Returns the blob of the index at a path if the index proves that the
    /// file is unchanged since, whatever filters have made of the content.
    fn clean_blob(&mut self, path: &[u8], found: &Metadata) -> Option<ObjectId> {
        let (stamp, known) = self.entry(path)?;
        // The lower halves of the system's numbers. Some gits record no
        // nanoseconds.
        let half = |number: i64| u32::try_from(number & 0xffff_ffff).unwrap_or_default();
        let is_time = |known: (u32, u32), seconds: i64, rest: i64| {
            known.0 == half(seconds) && (known.1 == 0 || known.1 == half(rest))
        };
        let the_same = known.size == half(found.len().cast_signed())
            && known.inode == half(found.ino().cast_signed())
            && is_time(known.modified, found.mtime(), found.mtime_nsec())
            && is_time(known.changed, found.ctime(), found.ctime_nsec());
        // A later change in the same tick has the same times.
        let is_racy = match known.modified.1 {
            0 => Nanos::from(found.mtime()) >= stamp / SECOND,
            // Behind a filter git writes the index in the tick of the last file.
            _ => written(found) > stamp,
        };
        (the_same && !is_racy).then_some(known.id)
    }

    /// Returns the entry of the index at a path, with the time when the index
    /// was written; `None` if there is none, or an unmerged one.
    fn entry(&mut self, path: &[u8]) -> Option<(Nanos, Entry)> {
        self.any_entry(path).filter(|(_, entry)| entry.is_plain())
    }

    fn any_entry(&mut self, path: &[u8]) -> Option<(Nanos, Entry)> {
        let file = self.tree.own.join("index");
        let stamp = written(&file.symlink_metadata().ok()?);
        if self.index.as_ref().is_none_or(|(known, _)| *known != stamp) {
            self.index = Some((stamp, GitIndex::read(&file).ok()));
        }
        let index = self.index.as_ref()?.1.as_ref()?;
        Some((stamp, *index.entry_of(path)?))
    }
}

/// Returns whether a git process may hold an index, by the time of its lock. A
/// file cannot be given that time.
fn is_held(lock: &Path, now: SystemTime) -> bool {
    let Ok(found) = lock.symlink_metadata() else {
        return false;
    };
    let made = u64::try_from(found.ctime()).unwrap_or_default();
    let age = now.duration_since(UNIX_EPOCH + Duration::from_secs(made));
    age.is_ok_and(|age| age < ABANDONED)
}

/// Returns the top directory of the repository that a file is in, and the
/// file's path in it. It may be above the workspace.
pub(crate) fn top_of(file: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let top = top_above(file.parent()?)?;
    Some((top.to_owned(), path_in(top, file)?))
}

/// Returns the top directory of the repository that a directory is in.
pub(super) fn top_above(directory: &Path) -> Option<&Path> {
    directory
        .ancestors()
        .take_while(|above| above.file_name().is_none_or(|name| name != ".git"))
        .find(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Returns a file's path in the repository with this top directory.
pub(super) fn path_in(top: &Path, file: &Path) -> Option<Vec<u8>> {
    let path = file.strip_prefix(top).ok()?;
    Some(native::bytes(path).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_lock_that_is_old_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("index.lock");
        let now = SystemTime::now();
        assert!(!is_held(&lock, now));
        std::fs::write(&lock, "").unwrap();
        assert!(is_held(&lock, now + Duration::from_secs(10)));
        assert!(!is_held(&lock, now + ABANDONED + Duration::from_secs(10)));
    }
}
