//! Which directories are watched: every directory that contains a tracked path,
//! and each one above it up to the root. Each has one watch, however many files
//! are tracked in it (LIFE-3).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::path::{Path, PathBuf};

use touchmark_proto::RelPath;
use touchmark_proto::daemon::Degraded;

use super::backend::{Backend, NoBackend, Refused};
use super::silent::silent_file_system;
use crate::links::absolute;
use crate::system::stat::MetadataExt as _;

/// A needed directory.
#[derive(Debug, Default)]
struct Dir {
    /// The number of entries below it.
    needed: usize,
    state: State,
    /// Why its file system reports too few events; `None` if it reports all.
    silent: Option<&'static str>,
}

impl Dir {
    /// Returns why events about the directory's content may be missing, or
    /// `None` if none is missing.
    fn cause(&self) -> Option<&str> {
        match &self.state {
            State::Failed(cause) => Some(cause),
            State::Absent => None,
            State::Watched => self.silent,
        }
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum State {
    /// The directory does not exist, is something else, or is below such a
    /// path. The watch on the directory above reports when it appears.
    #[default]
    Absent,
    /// The backend reports its events.
    Watched,
    /// The directory exists, and cannot be watched, for this cause.
    Failed(String),
}

impl State {
    /// Returns whether it is a real directory, so that paths below may be
    /// watched by name without passing a symlink.
    fn is_directory(&self) -> bool {
        *self != State::Absent
    }
}

/// The number of watches up to which an unneeded one is ended immediately. With
/// more, it is ended when it next reports an event: `notify` goes through all
/// of its watches to end one, so untracking thousands of files would block the
/// loop.
const PROMPT: usize = if cfg!(test) { 64 } else { 1024 };

/// The needed directories.
///
/// Invariants:
/// - A directory's state is other than `Absent` only if that of the directory
///   above is as well. Watches are made top-down, so that the one above reports
///   what appears meanwhile (SYNC-5).
/// - A state is `Watched` only if the watch was made after the last digested
///   event that removed the name. An older such event that is still queued ends
///   that watch (backends do that), but the event that the name appeared again
///   follows it.
pub(super) struct Directories {
    root: PathBuf,
    top: Dir,
    below: BTreeMap<RelPath, Dir>,
    /// The directories of `below` that have a cause. Each turn reads them.
    degraded: BTreeSet<RelPath>,
    /// Directories that are still watched and no longer needed.
    spare: BTreeMap<RelPath, ()>,
    /// For each file system by device: why it reports too few events, or
    /// `None`.
    file_systems: HashMap<u64, Option<&'static str>>,
    /// Remote places, which the loop does not touch since every call there may
    /// block, and the cause of missing events there.
    remote: Vec<(PathBuf, &'static str)>,
    pub(super) backend: Box<dyn Backend>,
}

impl Directories {
    pub(super) fn new(
        root: PathBuf,
        remote: &[(PathBuf, &'static str)],
        backend: Box<dyn Backend>,
    ) -> Self {
        let mut directories = Self {
            root,
            top: Dir::default(),
            below: BTreeMap::new(),
            degraded: BTreeSet::new(),
            spare: BTreeMap::new(),
            file_systems: HashMap::new(),
            remote: remote.to_vec(),
            backend,
        };
        directories.watch_top();
        directories
    }

    /// Watches the root, also when nothing is tracked: this is how the daemon
    /// notices that its workspace was removed (LIFE-1).
    fn watch_top(&mut self) {
        let Ok(metadata) = self.root.symlink_metadata() else {
            self.top.state = State::Absent;
            return;
        };
        self.top.silent = note_file_system(&mut self.file_systems, &self.root, &metadata);
        let results = self.backend.watch(std::slice::from_ref(&self.root));
        self.top.state = results.into_iter().next().map_or(State::Absent, state_of);
    }

    /// Returns whether the workspace's own file system reports too few events.
    /// It may be another machine's.
    pub(super) fn root_is_silent(&self) -> bool {
        self.top.silent.is_some()
    }

    /// Returns the place of the remote file system that contains `path`, and
    /// why it is not watched. The loop's thread touches nothing there.
    pub(super) fn remote(&self, path: &RelPath) -> Option<&(PathBuf, &'static str)> {
        if self.remote.is_empty() {
            return None;
        }
        let name = absolute(&self.root, path);
        let over = self
            .remote
            .iter()
            .filter(|(place, _)| name.starts_with(place));
        over.max_by_key(|(place, _)| place.as_os_str().len())
    }

    /// Returns whether `path` is a needed directory.
    pub(super) fn has(&self, path: &RelPath) -> bool {
        self.below.contains_key(path)
    }

    /// Returns the number of entries below a directory; 0 if it is not needed.
    pub(super) fn needed_by(&self, path: &RelPath) -> usize {
        self.below.get(path).map_or(0, |dir| dir.needed)
    }

    /// Returns whether `path` is a needed directory that is watched.
    pub(super) fn is_watched(&self, path: &RelPath) -> bool {
        self.below
            .get(path)
            .is_some_and(|dir| dir.state == State::Watched)
    }

    /// Returns whether `path` exists and could not be watched.
    pub(super) fn has_failed(&self, path: &RelPath) -> bool {
        self.below
            .get(path)
            .is_some_and(|dir| matches!(dir.state, State::Failed(_)))
    }

    /// Returns whether there is no backend.
    pub(super) fn is_off(&self) -> bool {
        self.backend.name() == NoBackend::NAME
    }

    /// Returns the number of watched directories.
    pub(super) fn watched(&self) -> usize {
        let below = self.below.values();
        below.filter(|dir| dir.state == State::Watched).count()
            + usize::from(self.top.state == State::Watched)
    }

    /// Counts `entry` in every directory above it, and watches those that
    /// exist.
    pub(super) fn need(&mut self, entry: &RelPath) {
        let mut fresh = Vec::new();
        let mut bytes = entry.as_bytes();
        while let Some(cut) = bytes.iter().rposition(|byte| *byte == b'/') {
            bytes = &bytes[..cut];
            match self.below.get_mut(bytes) {
                Some(dir) => dir.needed += 1,
                None => fresh.extend(RelPath::new(bytes)),
            }
        }
        if fresh.is_empty() {
            return;
        }
        for path in &fresh {
            self.below.entry(path.clone()).or_default().needed += 1;
        }
        fresh.sort();
        self.watch_all(&fresh);
    }

    /// Reverts [`need`](Self::need), and ends watches that are no longer
    /// needed.
    pub(super) fn release(&mut self, entry: &RelPath) {
        let prompt = self.below.len() + self.spare.len() < PROMPT;
        let mut unneeded = Vec::new();
        for path in above(entry) {
            let Some(dir) = self.below.get_mut(&path) else {
                continue;
            };
            dir.needed -= 1;
            if dir.needed > 0 {
                continue;
            }
            if dir.state == State::Watched {
                if prompt {
                    unneeded.push(absolute(&self.root, &path));
                } else {
                    self.spare.insert(path.clone(), ());
                }
            }
            self.below.remove(&path);
            self.degraded.remove(&path);
        }
        if !unneeded.is_empty() {
            self.backend.unwatch(&unneeded);
        }
    }

    /// Handles an event of `directory`: ends its watch if it is no longer
    /// needed.
    pub(super) fn heard_from(&mut self, directory: &RelPath) {
        if self.spare.remove(directory).is_some() {
            self.backend.unwatch(&[absolute(&self.root, directory)]);
        }
    }

    /// Handles that `path` was removed or moved away. The backend has ended its
    /// watch and those below, since their inodes may have other names now.
    pub(super) fn drop_at(&mut self, path: &RelPath) {
        for place in at_or_below(&self.spare, path) {
            self.spare.remove(&place);
        }
        let places = at_or_below(&self.below, path);
        let mut left = Vec::new();
        let mut failed = false;
        for place in &places {
            if let Some(dir) = self.below.get_mut(place) {
                failed |= matches!(dir.state, State::Failed(_));
                self.degraded.remove(place);
                if std::mem::take(&mut dir.state) == State::Watched && failed {
                    // Without a watch on the directory above, the backend may
                    // not have ended this one.
                    left.push(absolute(&self.root, place));
                }
            }
        }
        if !left.is_empty() {
            self.backend.unwatch(&left);
        }
    }

    /// Looks at `path` and the needed directories below again, by name, and
    /// watches those that exist.
    pub(super) fn renew_at(&mut self, path: &RelPath) {
        self.drop_at(path);
        let places = at_or_below(&self.below, path);
        self.watch_all(&places);
    }

    /// Handles that a file system was mounted at `path`, or unmounted. The
    /// watches there and below are on the previous directories.
    pub(super) fn remounted(&mut self, path: &RelPath, remote: &[(PathBuf, &'static str)]) {
        self.remote = remote.to_vec();
        // Another file system may have the number of an old one now.
        self.file_systems.clear();
        self.made_anew(path);
    }

    /// Ends the watches at `path` and below, and watches the directories that
    /// are there now.
    pub(super) fn made_anew(&mut self, path: &RelPath) {
        let mut places = at_or_below(&self.spare, path);
        places.extend(at_or_below(&self.below, path));
        let names: Vec<_> = places
            .iter()
            .map(|place| absolute(&self.root, place))
            .collect();
        self.backend.unwatch(&names);
        self.renew_at(path);
    }

    /// Handles a rename onto `path`: a watch on the replaced directory may
    /// still exist, if a process has it open.
    pub(super) fn replaced(&mut self, path: &RelPath) {
        if self.is_watched(path) {
            self.backend.unwatch(&[absolute(&self.root, path)]);
        }
    }

    /// Replaces the backend with a new one, which watches nothing yet, and
    /// watches everything.
    pub(super) fn restart(&mut self, backend: Box<dyn Backend>) {
        self.backend = backend;
        self.top.state = State::Absent;
        self.spare.clear();
        for dir in self.below.values_mut() {
            dir.state = State::Absent;
        }
        self.degraded.clear();
        self.watch_top();
        let all: Vec<_> = self.below.keys().cloned().collect();
        self.watch_all(&all);
    }

    /// Tries again to watch the directories for which that failed. Returns
    /// those that are watched now; `None` in the list is the root.
    pub(super) fn mend(&mut self) -> Vec<Option<RelPath>> {
        let mut mended = Vec::new();
        if self.top.state != State::Watched {
            self.watch_top();
            if self.top.state == State::Watched {
                let all: Vec<_> = self.below.keys().cloned().collect();
                self.watch_all(&all);
                mended.push(None);
            }
        }
        let failed: Vec<_> = self
            .degraded
            .iter()
            .filter(|path| self.has_failed(path) && self.remote(path).is_none())
            .cloned()
            .collect();
        for path in failed {
            self.renew_at(&path);
            if self.is_watched(&path) {
                mended.push(Some(path));
            }
        }
        mended
    }

    /// Watches those of `places` (sorted, so parents first) that are
    /// directories and not watched yet. It goes level by level: a directory is
    /// looked at only when the one above is watched, so nothing can appear
    /// unnoticed in between.
    fn watch_all(&mut self, places: &[RelPath]) {
        let mut levels: BTreeMap<usize, Vec<&RelPath>> = BTreeMap::new();
        for place in places {
            levels.entry(depth(place)).or_default().push(place);
        }
        for level in levels.into_values() {
            let mut there = Vec::new();
            let mut names = Vec::new();
            for place in level {
                let parent_is_directory = match place.parent() {
                    Some(parent) => self
                        .below
                        .get(&parent)
                        .is_some_and(|dir| dir.state.is_directory()),
                    None => self.top.state.is_directory(),
                };
                let unwatched = self
                    .below
                    .get(place)
                    .is_some_and(|dir| dir.state != State::Watched);
                if !parent_is_directory || !unwatched {
                    continue;
                }
                let name = absolute(&self.root, place);
                let untouched = match self.remote(place) {
                    Some((_, cause)) => Some(*cause),
                    None => is_too_long(&name).then_some("its name is too long to be watched"),
                };
                if let Some(cause) = untouched.map(str::to_owned) {
                    if let Some(dir) = self.below.get_mut(place) {
                        dir.state = State::Failed(cause);
                        self.degraded.insert(place.clone());
                    }
                    continue;
                }
                if let Ok(metadata) = name.symlink_metadata()
                    && metadata.is_dir()
                {
                    let silent = note_file_system(&mut self.file_systems, &name, &metadata);
                    there.push((place, silent));
                    names.push(name);
                }
            }
            if names.is_empty() {
                continue;
            }
            let mut results = self.backend.watch(&names);
            if !self.spare.is_empty() && results.iter().any(is_refusal) {
                // The limit may be reached: end the watches that are not
                // needed.
                let spare: Vec<_> = std::mem::take(&mut self.spare)
                    .into_keys()
                    .map(|path| absolute(&self.root, &path))
                    .collect();
                self.backend.unwatch(&spare);
                results = self.backend.watch(&names);
            }
            for ((place, silent), result) in there.into_iter().zip(results) {
                self.spare.remove(place);
                if let Some(dir) = self.below.get_mut(place) {
                    dir.silent = silent;
                    dir.state = state_of(result);
                    if dir.cause().is_some() {
                        self.degraded.insert(place.clone());
                    } else {
                        self.degraded.remove(place);
                    }
                }
            }
        }
    }

    /// Returns why events about `entry` may be missing, or `None` if none is
    /// missing.
    pub(super) fn blind(&self, entry: &RelPath) -> Option<&str> {
        if self.degraded.is_empty() {
            return self.top.cause();
        }
        self.top
            .cause()
            .or_else(|| above(entry).find_map(|path| self.below.get(&path).and_then(Dir::cause)))
    }

    /// Returns the places with reduced coverage: the topmost directory of each
    /// cause.
    pub(super) fn degraded(&self) -> Vec<Degraded> {
        let top = self.top.cause();
        let mut list = Vec::new();
        if let Some(cause) = top {
            list.push(Degraded {
                path: None,
                cause: cause.to_owned(),
            });
        }
        for path in &self.degraded {
            let above = match path.parent() {
                Some(parent) => self.below.get(&parent).and_then(Dir::cause),
                None => top,
            };
            if let Some(cause) = self.below.get(path).and_then(Dir::cause)
                && above != Some(cause)
            {
                list.push(Degraded {
                    path: Some(path.clone()),
                    cause: cause.to_owned(),
                });
            }
        }
        list
    }
}

/// Returns whether a whole path is longer than the system allows (PATH_MAX). It
/// can still be reached from an open directory.
fn is_too_long(name: &Path) -> bool {
    let looked = name.symlink_metadata();
    looked.is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidFilename)
}

fn is_refusal(result: &Result<(), Refused>) -> bool {
    matches!(result, Err(Refused::Because(_)))
}

fn state_of(result: Result<(), Refused>) -> State {
    match result {
        Ok(()) => State::Watched,
        Err(Refused::Absent) => State::Absent,
        Err(Refused::Because(cause)) => State::Failed(cause),
    }
}

/// Returns the directories above `path`, the nearest first, without the root.
fn above(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

fn depth(path: &RelPath) -> usize {
    path.as_bytes().iter().filter(|byte| **byte == b'/').count()
}

/// Returns the keys that are `path` or below it, in order: parents first.
pub(super) fn at_or_below<V>(map: &BTreeMap<RelPath, V>, path: &RelPath) -> Vec<RelPath> {
    let mut found = Vec::new();
    if map.contains_key(path) {
        found.push(path.clone());
    }
    // No name below sorts before `path/\x01`. Names like `path-x`, which are
    // not below, do.
    if let Ok(first) = path.join(b"\x01") {
        found.extend(
            map.range(first..)
                .map(|(place, _)| place)
                .take_while(|place| place.below(path).is_some())
                .cloned(),
        );
    }
    found
}

fn note_file_system(
    known: &mut HashMap<u64, Option<&'static str>>,
    path: &Path,
    metadata: &Metadata,
) -> Option<&'static str> {
    *known
        .entry(metadata.dev())
        .or_insert_with(|| silent_file_system(path))
}
