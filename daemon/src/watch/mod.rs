//! The watcher: passes the system's events about tracked paths to the engine as
//! hints, in order, with fences between them (SYNC-1..5, LIFE-3, LOSS-1/2).
//!
//! ```text
//! backend's thread ── RawEvent ──► the loop's channel ──► Watcher::digest ──► Input
//! ```
//!
//! The backend only passes events on. Everything else happens on the loop's
//! thread, in [`Watcher::digest`], because adding a watch from the backend's
//! thread would wait for that very thread.
//!
//! Invariants:
//! - Every directory that contains a tracked path, and each directory above it
//!   up to the root, is watched separately (never recursively), if it exists.
//! - A watch follows its inode, a path does not. Whenever a directory's name is
//!   removed, its watch and those below end. Whenever it appears, it and all
//!   needed directories below are watched by name, and then every tracked path
//!   below is hinted (watch first, look afterwards: SYNC-5).
//! - A fence is reported only after everything that was in the queue before it,
//!   including the first half of a rename.

mod backend;
mod backlog;
mod busy;
mod cover;
mod coverage;
mod digest;
mod dirs;
mod fence;
#[cfg_attr(not(target_os = "linux"), path = "inotify/unsupported.rs")]
mod inotify;
mod links;
#[cfg_attr(not(target_os = "linux"), path = "mounts/unsupported.rs")]
mod mounts;
mod notifier;
#[cfg_attr(not(target_os = "linux"), path = "silent/unsupported.rs")]
mod silent;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use touchmark_engine::Input;
use touchmark_proto::{Places, RelPath};

pub use self::backend::RawEvent;
use self::backend::{Backend, NoBackend, Sink};
pub use self::backlog::{Backlog, Waiting};
use self::busy::Busy;
use self::cover::Cover;
use self::dirs::Directories;
use self::fence::Fence;
use self::inotify::Inotify;
use self::links::HardLinks;
use self::mounts::Mounts;
pub use self::mounts::{MountBell, has_other_paths, shows_a_part};
use self::notifier::Notifier;
pub use self::silent::silent_file_system;
use crate::links::{End, absolute, relative, resolve_until};
use crate::system::stat::MetadataExt as _;

/// The way in which the workspace is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The system's own interface. If it is not available, nothing is watched,
    /// and [`Watcher::degraded`] contains the reason.
    #[default]
    Auto,
    /// Linux's inotify.
    Inotify,
    /// The `notify` crate's backend for this system.
    Notify,
    /// Nothing is watched: every path is read for each query (LOSS-2).
    Off,
}

/// An error that prevents the watcher or a fence from working.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The workspace's directory cannot be read.
    #[error("the workspace {path:?} cannot be watched: {source}")]
    Root {
        /// The workspace's directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No fence can be made: answers rest on reads instead (SYNC-2).
    #[error("no fence can be made in {path:?}: {cause}")]
    Fence {
        /// The fence's private directory.
        path: PathBuf,
        /// The cause, in words.
        cause: String,
    },
}

impl WatchError {
    /// Returns what the user can do about the error.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Root { .. } => "check that the workspace exists and may be read",
            Self::Fence { .. } => {
                "check that the runtime directory exists, belongs to you and has space"
            }
        }
    }
}

/// The first half of a rename whose second half may follow.
struct HeldMove {
    cookie: usize,
    from: RelPath,
}

/// The device, the inode and the time of creation of the root, by which a
/// replaced root is noticed. A new directory often gets the inode of a removed
/// one, so the time counts as well; `None` if the file system has none.
type RootIdentity = (u64, u64, Option<SystemTime>);

fn identity_of(metadata: &Metadata) -> RootIdentity {
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

/// Watches the tracked paths. The loop owns it, and calls every method on its
/// own thread.
pub struct Watcher {
    root: PathBuf,
    root_identity: RootIdentity,
    root_gone: bool,
    choice: Choice,
    sink: Sink,
    generation: u64,
    directories: Directories,
    cover: Cover,
    hard_links: HardLinks,
    mounts: Mounts,
    fence: Fence,
    /// Why no fence can be made: the fence's directory is not known to be
    /// watched. `None` if it is, or if the backend makes fences without it.
    fence_broken: Option<String>,
    /// The socket and the lock, which are outside the workspace.
    beside: Vec<PathBuf>,
    /// The runtime directory and the directory of the lock.
    beside_in: Vec<PathBuf>,
    beside_touched: bool,
    held: Option<HeldMove>,
    /// The names, old and new, of a rename whose old name still exists. It is
    /// the first half of an exchange if the reverse rename is the next event.
    doubtful: Option<(RelPath, RelPath)>,
    /// First halves of renames that were treated as removals. Their second half
    /// may still arrive.
    given_up: VecDeque<HeldMove>,
    /// The cookie and the path of the last first half of a rename, of a tracked
    /// path or not.
    last_from: Option<(usize, RelPath)>,
    /// The old and new name of the last rename. A reverse rename after it shows
    /// that the names were exchanged.
    last_rename: Option<(RelPath, RelPath)>,
    busy: Busy,
}

impl Watcher {
    /// Begins to watch the workspace's own directory and the fence's.
    ///
    /// `root` is canonical. `fence_dir` is outside the workspace and used by
    /// this daemon only. It is created with mode 0700 if it is needed and does
    /// not exist. `sink` is called in order, on the backend's thread or within
    /// calls of the watcher. It must neither block nor lose events: it passes
    /// them to the loop's unbounded channel.
    ///
    /// # Errors
    /// [`WatchError::Root`] if there is no workspace. A backend or a fence that
    /// is not available is no error, but a degradation (LOSS-2, SYNC-2).
    pub fn new(
        root: &Path,
        fence_dir: &Path,
        choice: Choice,
        sink: impl Fn(RawEvent) + Send + Sync + 'static,
    ) -> Result<Self, WatchError> {
        let metadata = root.symlink_metadata().map_err(|source| WatchError::Root {
            path: root.to_path_buf(),
            source,
        })?;
        let sink: Sink = Arc::new(sink);
        // Created before the first watch, so that any later mount is noticed.
        let mounts = Mounts::new(root);
        let backend = make_backend(choice, 0, &sink);
        let mut watcher = Self {
            root: root.to_path_buf(),
            root_identity: identity_of(&metadata),
            root_gone: false,
            choice,
            sink,
            generation: 0,
            directories: Directories::new(root.to_path_buf(), mounts.remote(), backend),
            cover: Cover::default(),
            hard_links: HardLinks::default(),
            mounts,
            fence: Fence::new(fence_dir),
            fence_broken: None,
            beside: Vec::new(),
            beside_in: Vec::new(),
            beside_touched: false,
            held: None,
            doubtful: None,
            given_up: VecDeque::new(),
            last_from: None,
            last_rename: None,
            busy: Busy::new(Instant::now()),
        };
        watcher.watch_fence();
        Ok(watcher)
    }

    /// Watches everything that affects `path`: the directory that contains it
    /// and those above, as far as they exist, and the same for each symlink's
    /// target. Every change after this call is reported. A path may be tracked
    /// again, which has no effect.
    pub fn track(&mut self, path: &RelPath) {
        if self.track_unlinked(path) {
            self.follow(path);
        }
    }

    /// Does the same as [`track`](Self::track), but does not watch symlinks'
    /// targets. It is for paths whose links are resolved next, and which are
    /// then [`follow`](Self::follow)ed if there are any. Returns whether the
    /// path was not tracked before.
    pub fn track_unlinked(&mut self, path: &RelPath) -> bool {
        let news = self.cover.track(path);
        if news {
            self.directories.need(path);
        }
        news
    }

    /// Returns whether the stat of `path` is not enough to tell whether the
    /// file was written, since it can be written without an event or by another
    /// name.
    pub fn must_be_read(&self, path: &RelPath) -> bool {
        self.blind(path) || self.mounts.is_place(&absolute(&self.root, path))
    }

    /// Returns the other name in the workspace of a file or directory that is
    /// mounted a second time, if `path` is at or below such a mount (FILE-1).
    pub fn behind_mount(&self, path: &RelPath) -> Option<RelPath> {
        let source = self.mounts.source(&absolute(&self.root, path))?;
        relative(&self.root, &source)
    }

    /// Watches the socket and the lock, which are outside the workspace. Events
    /// there cause no input. [`take_beside`](Self::take_beside) returns whether
    /// there were any. It is called again when one of these files was created
    /// again.
    pub fn watch_beside(&mut self, places: &Places) {
        let files = [&places.lock, &places.spare_lock, &places.socket];
        let lock = places.lock.parent().map(Path::to_path_buf);
        self.beside_in = lock.into_iter().chain([places.runtime.clone()]).collect();
        self.beside = files.into_iter().cloned().collect();
        self.rewatch_beside();
    }

    fn rewatch_beside(&mut self) {
        let backend = &mut self.directories.backend;
        backend.unwatch(&self.beside);
        backend.unwatch(&self.beside_in);
        // If a watch fails, a loss of these files is only noticed later.
        backend.watch_names(&self.beside, &self.beside_in);
    }

    /// Returns whether the system gave no means of watching, although one was
    /// requested: the user has no inotify instance left.
    pub fn lacks_backend(&self) -> bool {
        self.directories.is_off() && self.choice != Choice::Off
    }

    /// Returns whether an inotify instance is in use.
    pub fn has_instance(&self) -> bool {
        self.directories.backend.name() == "inotify"
    }

    /// Returns whether something happened to the files of
    /// [`watch_beside`](Self::watch_beside) since the last call.
    pub fn take_beside(&mut self) -> bool {
        std::mem::take(&mut self.beside_touched)
    }

    /// Returns whether a path is tracked.
    pub(crate) fn is_tracked(&self, path: &RelPath) -> bool {
        self.cover.is_tracked(path)
    }

    /// Ends what [`track`](Self::track) began. Watches that no other path needs
    /// end.
    pub fn untrack(&mut self, path: &RelPath) {
        for entry in self.cover.entries_of(path).to_vec() {
            self.uncover(path, &entry);
        }
    }

    /// Takes the name `real` at which a read found the bytes of a tracked
    /// `path`; `None` if there was no symlink. The watcher follows links
    /// without this, but may have missed a change of one. Returns whether more
    /// is watched than before. Then a write in the meantime may have been
    /// missed, and the path has to be read again.
    pub fn alias(&mut self, path: &RelPath, real: Option<&RelPath>) -> bool {
        if !self.cover.is_tracked(path) {
            return false;
        }
        let known = match real {
            Some(real) => self.cover.entries_of(path).contains(real),
            None => self.cover.entries_of(path).len() == 1,
        };
        !known && self.follow(path)
    }

    /// Watches the file at `path` (its real name) separately as well, since it
    /// can be written by another of its names (SYNC-4). The watcher does so for
    /// every tracked file that it finds to have several links. But a link that
    /// is made in an unwatched directory causes no event, and only a read finds
    /// it. Returns whether the watch is new. Then a write in the meantime may
    /// have been missed, and the path has to be read again.
    pub fn watch_file(&mut self, path: &RelPath) -> bool {
        !self.cover.spoken_for(path).is_empty()
            && self.directories.remote(path).is_none()
            && self
                .hard_links
                .watch(path, &self.root, self.directories.backend.as_mut())
    }

    /// Makes a fence: [`Input::FenceReached`] with `number` follows after
    /// everything that happened in watched places before this call.
    ///
    /// # Errors
    /// [`WatchError::Fence`] if no fence can be made. No input follows then.
    pub fn fence(&mut self, number: u64) -> Result<(), WatchError> {
        self.make_fence(Some(number))
            .map_err(|cause| WatchError::Fence {
                path: self.fence.dir().to_path_buf(),
                cause,
            })
    }

    /// Makes sure that a fence follows the event that is being digested. A
    /// pending one does. One for each event of a storm would read the system's
    /// queue as often (LIM-6).
    fn ensure_fence(&mut self) -> Result<(), String> {
        match self.fence.is_pending() {
            true => Ok(()),
            false => self.make_fence(None),
        }
    }

    fn make_fence(&mut self, asked: Option<u64>) -> Result<(), String> {
        if self.directories.backend.fences() {
            let number = self.fence.next(asked);
            self.directories.backend.fence(number);
            return Ok(());
        }
        if self.fence_broken.is_none() && self.fence.make(asked).is_ok() {
            return Ok(());
        }
        // Another process may have removed files from the runtime directory.
        self.directories
            .backend
            .unwatch(&[self.fence.dir().to_path_buf()]);
        self.watch_fence();
        match &self.fence_broken {
            Some(cause) => Err(cause.clone()),
            None => self.fence.make(asked).map_err(|error| error.to_string()),
        }
    }

    fn watch_fence(&mut self) {
        if self.directories.backend.fences() {
            self.fence_broken = None;
            return;
        }
        let dir = self.fence.dir().to_path_buf();
        let prepared = self.fence.prepare().map_err(|error| error.to_string());
        self.fence_broken = prepared
            .and_then(
                |()| match self.directories.backend.watch(&[dir]).into_iter().next() {
                    Some(Ok(())) => Ok(()),
                    Some(Err(backend::Refused::Because(cause))) => Err(cause),
                    Some(Err(backend::Refused::Absent)) | None => {
                        Err("its directory is gone".to_owned())
                    }
                },
            )
            .err();
    }

    /// Checks for changes that cause no event: mounts in the workspace, and
    /// whether the workspace's name now resolves to another directory. It is
    /// called before each fence and costs two system calls.
    pub fn look_around(&mut self, out: &mut Vec<Input>) {
        self.look_at_renewed(out);
        let Some(places) = self.mounts.changed() else {
            self.check_root();
            return;
        };
        if self.check_root() {
            return;
        }
        for place in places {
            let Some(path) = relative(&self.root, &place) else {
                continue;
            };
            self.directories.remounted(&path, self.mounts.remote());
            self.gap_at(vec![path], out);
        }
    }

    /// Reports a gap for these places, for everything below them, and for every
    /// tracked path with a symlink that resolves there. The links of each path
    /// are followed once, even if it is reached from several places.
    fn gap_at(&mut self, places: Vec<RelPath>, out: &mut Vec<Input>) {
        let (entries, mut names) = self.reached_by(&places);
        for entry in entries {
            self.hard_links
                .drop_at(&entry, &self.root, self.directories.backend.as_mut());
        }
        for name in &names {
            self.follow(name);
        }
        let here = |name: &RelPath, place| name == place || name.below(place).is_some();
        names.retain(|name| !places.iter().any(|place| here(name, place)));
        let gaps = places.into_iter().chain(names);
        out.extend(gaps.map(|below| Input::Gap { below }));
    }

    /// Returns the entries at and below these places, and the tracked paths
    /// that resolve through them: a symlink anywhere may resolve to here
    /// (FILE-4).
    fn reached_by(&self, places: &[RelPath]) -> (Vec<RelPath>, BTreeSet<RelPath>) {
        let mut entries = places.to_vec();
        entries.extend(
            places
                .iter()
                .flat_map(|place| self.cover.entries_below(place)),
        );
        let names = entries
            .iter()
            .flat_map(|entry| self.cover.spoken_for(entry));
        let names = names.cloned().collect();
        (entries, names)
    }

    /// Tries again to watch what could not be watched, and reports a gap for
    /// each place where that succeeded. It is called when the loop checks
    /// degraded paths.
    pub fn mend(&mut self, out: &mut Vec<Input>) {
        if self.lacks_backend() {
            // The user's limit of inotify instances may no longer be reached.
            let backend = make_backend(self.choice, self.generation + 1, &self.sink);
            if backend.name() != NoBackend::NAME {
                self.generation += 1;
                return self.start_anew(backend, out);
            }
        }
        if self.fence_broken.is_some() {
            self.watch_fence();
        }
        for path in self.hard_links.failed_names() {
            if self.watch_file(&path) {
                out.extend(self.cover.spoken_for(&path).iter().map(|path| Input::Gap {
                    below: path.clone(),
                }));
            }
        }
        for mended in self.directories.mend() {
            match mended {
                Some(below) => out.push(Input::Gap { below }),
                None => out.push(Input::Overflow),
            }
        }
    }

    /// Returns whether the workspace's directory was removed or renamed
    /// (LIFE-1).
    pub fn root_gone(&self) -> bool {
        self.root_gone
    }

    /// Checks whether the workspace's name still resolves to the watched
    /// directory, since a rename of a directory above causes no event. Returns
    /// [`root_gone`](Self::root_gone).
    pub fn check_root(&mut self) -> bool {
        let same = self
            .root
            .symlink_metadata()
            // A directory that is being removed still has its name for a
            // moment.
            .is_ok_and(|metadata| {
                metadata.nlink() > 0 && identity_of(&metadata) == self.root_identity
            });
        self.root_gone |= !same;
        self.root_gone
    }

    /// Updates the entries of `path`: itself, each symlink on the way, and the
    /// name at which it ends. Returns whether there are new ones.
    pub fn follow(&mut self, path: &RelPath) -> bool {
        let mut grew = false;
        // A link may change before its target's directory is watched, so this
        // repeats until nothing new is found.
        for _ in 0..8 {
            let resolved = resolve_until(
                &self.root,
                path,
                |dir| self.directories.is_watched(dir),
                |name| self.directories.remote(name).is_some(),
            );
            let mut wanted = vec![path.clone()];
            let end = match resolved.end {
                End::There(end, metadata) => {
                    // A file that is a mount point is written under its other
                    // name.
                    let place = absolute(&self.root, &end);
                    if metadata.is_file() && (metadata.nlink() > 1 || self.mounts.is_place(&place))
                    {
                        self.watch_file(&end);
                    }
                    Some(end)
                }
                End::Missing(end) if !resolved.links.is_empty() => Some(end),
                _ => None,
            };
            for entry in resolved.links.into_iter().chain(end) {
                if !wanted.contains(&entry) {
                    wanted.push(entry);
                }
            }
            let known = self.cover.entries_of(path).to_vec();
            let fresh: Vec<_> = wanted.iter().filter(|e| !known.contains(e)).collect();
            for entry in &fresh {
                self.cover.add(path, entry);
                self.directories.need(entry);
            }
            for entry in known.iter().filter(|entry| !wanted.contains(entry)) {
                self.uncover(path, entry);
            }
            if fresh.is_empty() {
                break;
            }
            grew = true;
        }
        grew
    }

    fn uncover(&mut self, tracked: &RelPath, entry: &RelPath) {
        self.cover.remove(tracked, entry);
        self.directories.release(entry);
        if self.cover.spoken_for(entry).is_empty() {
            self.hard_links
                .drop_at(entry, &self.root, self.directories.backend.as_mut());
        }
    }
}

/// Creates a backend of the requested kind, or one that reports why there is
/// none.
fn make_backend(choice: Choice, generation: u64, sink: &Sink) -> Box<dyn Backend> {
    let made: Result<Box<dyn Backend>, String> = match choice {
        Choice::Auto if !inotify::IS_HERE => {
            Notifier::new(generation, sink.clone()).map(|made| Box::new(made) as _)
        }
        Choice::Auto | Choice::Inotify => {
            Inotify::new(generation, sink.clone()).map(|made| Box::new(made) as _)
        }
        Choice::Notify => Notifier::new(generation, sink.clone()).map(|made| Box::new(made) as _),
        Choice::Off => Err("watching is switched off".to_owned()),
    };
    made.unwrap_or_else(|cause| Box::new(NoBackend { cause }))
}
