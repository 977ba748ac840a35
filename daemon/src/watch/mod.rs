//! The watcher: what the system says about tracked paths, as hints for the
//! engine, in order, with fences between (SYNC-1..5, LIFE-3, LOSS-1/2).
//!
//! ```text
//! backend's thread ── RawEvent ──► the loop's channel ──► Watcher::digest ──► Input
//! ```
//!
//! The backend only hands over. Everything else happens on the loop's thread,
//! in [`Watcher::digest`], because adding a watch from the backend's thread
//! would wait for that very thread.
//!
//! Invariants:
//! - Every directory that holds a tracked path, and each above it up to the
//!   root, is watched by itself (never recursively), if it exists.
//! - A watch follows its inode, a path does not: whenever a directory's name
//!   goes, its watch and those below end; whenever it appears, it and all
//!   needed below are watched by name, and then every tracked path below is
//!   hinted (watch first, look afterwards: SYNC-5).
//! - A fence is reported only after everything that the queue held before it,
//!   the first half of a rename included.

mod backend;
mod busy;
mod cover;
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
use std::time::Instant;

use touchmark_engine::Input;
use touchmark_proto::daemon::Degraded;
use touchmark_proto::{Places, RelPath};

pub use self::backend::RawEvent;
use self::backend::{Backend, NoBackend, Sink};
use self::busy::Busy;
use self::cover::Cover;
use self::dirs::Directories;
use self::fence::Fence;
use self::inotify::Inotify;
use self::links::HardLinks;
pub use self::mounts::MountBell;
use self::mounts::Mounts;
use self::notifier::Notifier;
pub use self::silent::silent_file_system;
use crate::links::{End, absolute, relative, resolve_until};
use crate::system::stat::MetadataExt as _;

/// How to watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The system's way; where that cannot be had, not at all, and
    /// [`Watcher::degraded`] says why.
    #[default]
    Auto,
    /// Linux's inotify.
    Inotify,
    /// The `notify` crate's way on this system.
    Notify,
    /// Not at all: every path is read when it is asked for (LOSS-2).
    Off,
}

/// What keeps the watcher from working.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The workspace's directory cannot be looked at.
    #[error("the workspace {path:?} cannot be watched: {source}")]
    Root {
        /// The workspace.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No fence can be made: answers rest on reads instead (SYNC-2).
    #[error("no fence can be made in {path:?}: {cause}")]
    Fence {
        /// The private directory.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

impl WatchError {
    /// What to do about it.
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

/// Watches what is tracked. Owned by the loop; every method is called on the
/// loop's thread.
pub struct Watcher {
    root: PathBuf,
    /// Device and inode of the root, to notice that it is another.
    root_identity: (u64, u64),
    root_gone: bool,
    choice: Choice,
    sink: Sink,
    generation: u64,
    directories: Directories,
    cover: Cover,
    hard_links: HardLinks,
    mounts: Mounts,
    fence: Fence,
    /// Set when the fence's own directory is not known to be watched.
    fence_broken: Option<String>,
    /// A directory outside the workspace, and whether it was touched.
    /// Directories outside the workspace: of the socket and of the lock.
    beside: Vec<PathBuf>,
    beside_touched: bool,
    held: Option<HeldMove>,
    /// A rename whose old name is there, from and to: the first half of an
    /// exchange, if its mirror is what happens next.
    doubtful: Option<(RelPath, RelPath)>,
    /// Held moves that were given up, should their second half come late.
    given_up: VecDeque<HeldMove>,
    /// The last first half, whether it mattered or not.
    last_from: Option<(usize, RelPath)>,
    /// The last rename, to know an exchange of two names by its mirror.
    last_rename: Option<(RelPath, RelPath)>,
    busy: Busy,
}

impl Watcher {
    /// Begins to watch the workspace's own directory and the fence's.
    ///
    /// `root` is canonical. `fence_dir` is this daemon's alone, outside the
    /// workspace, made with mode 0700 if it is needed and not there. `sink` is
    /// called on the backend's thread or within calls of the watcher's, in
    /// order, and must neither block nor lose: it hands over to the loop's
    /// unbounded channel.
    ///
    /// # Errors
    /// [`WatchError::Root`] if there is no workspace. A backend or a fence
    /// that cannot be had is no error, but degrades (LOSS-2, SYNC-2).
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
        // Before the first watch: a mount that comes later is noticed.
        let mounts = Mounts::new(root);
        let backend = make_backend(choice, 0, &sink);
        let mut watcher = Self {
            root: root.to_path_buf(),
            root_identity: (metadata.dev(), metadata.ino()),
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

    /// Watches whatever can happen to `path`: the directory that holds it and
    /// those above, or as many of them as exist; where symlinks lead to, too.
    /// When this returns, everything that happens later is reported. Once per
    /// path; again is no harm.
    pub fn track(&mut self, path: &RelPath) {
        if self.track_unlinked(path) {
            self.follow(path);
        }
    }

    /// The same, but for where symlinks lead to: for a path of which that is
    /// found out next, and then, if there are any, [`follow`](Self::follow)ed.
    /// Returns whether that is news.
    pub fn track_unlinked(&mut self, path: &RelPath) -> bool {
        let news = self.cover.track(path);
        if news {
            self.directories.need(path);
        }
        news
    }

    /// Whether a look at the stat of `path` does not tell whether it was
    /// written: it may be without an event, or by another name.
    pub fn must_be_read(&self, path: &RelPath) -> bool {
        self.blind(path) || self.mounts.is_place(&absolute(&self.root, path))
    }

    /// Where in the workspace a real name leads by a directory or file that is
    /// mounted in it once more (FILE-1).
    pub fn behind_mount(&self, path: &RelPath) -> Option<RelPath> {
        let source = self.mounts.source(&absolute(&self.root, path))?;
        relative(&self.root, &source)
    }

    /// Watches the directories of the socket and of the lock, outside the
    /// workspace. Nothing that happens there is an input;
    /// [`take_beside`](Self::take_beside) says that something did. Again, if
    /// one was made anew.
    pub fn watch_beside(&mut self, places: &Places) {
        let lock = places.lock.parent().map(Path::to_path_buf);
        self.beside = lock.into_iter().chain([places.runtime.clone()]).collect();
        self.rewatch_beside();
    }

    fn rewatch_beside(&mut self) {
        self.directories.backend.unwatch(&self.beside);
        // Without it, whoever asks just looks later.
        let _unwatched = self.directories.backend.watch(&self.beside);
    }

    /// Whether something has happened in a directory that is
    /// [watched beside](Self::watch_beside) since the last call.
    pub fn take_beside(&mut self) -> bool {
        std::mem::take(&mut self.beside_touched)
    }

    /// Ends what [`track`](Self::track) began; watches that nothing else
    /// needs end.
    pub fn untrack(&mut self, path: &RelPath) {
        for entry in self.cover.entries_of(path).to_vec() {
            self.uncover(path, &entry);
        }
    }

    /// Tells where the bytes of a tracked `path` were found: at `real`, if
    /// symlinks led there. The watcher follows links by itself; this catches
    /// what it could not have seen. Returns whether more is watched than
    /// before: then what was written meanwhile may have been missed, and the
    /// path is to be read again.
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

    /// Watches the file at `path` (its real name) by itself as well, since it
    /// can be written by another of its names (SYNC-4). The watcher does so
    /// unasked for every tracked file that it sees to have several links; but
    /// a link made in an unwatched directory makes no event, and only a read
    /// finds it. Returns whether the watch is new: then what was written
    /// meanwhile may have been missed, and the path is to be read again.
    pub fn watch_file(&mut self, path: &RelPath) -> bool {
        !self.cover.spoken_for(path).is_empty()
            && self.directories.remote(path).is_none()
            && self
                .hard_links
                .watch(path, &self.root, self.directories.backend.as_mut())
    }

    /// Makes a fence: [`Input::FenceReached`] with `number` follows behind
    /// everything that happened in watched places before this call.
    ///
    /// # Errors
    /// [`WatchError::Fence`] if none can be made; nothing follows then.
    pub fn fence(&mut self, number: u64) -> Result<(), WatchError> {
        self.make_fence(Some(number))
            .map_err(|cause| WatchError::Fence {
                path: self.fence.dir().to_path_buf(),
                cause,
            })
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
        // Somebody may have cleaned the runtime directory.
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

    /// Looks for what makes no event: whether something was mounted or
    /// unmounted in the workspace, and whether its name leads elsewhere by
    /// now. Before each fence; it costs two system calls.
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

    /// Has everything looked at that is at these places and below, or led
    /// there: what happened to it was not seen. The links of each path are
    /// followed once, by however many of the places it is reached.
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

    /// What is at these places and below, and the tracked paths that it speaks
    /// for: a symlink may lead here from anywhere (FILE-4).
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

    /// Tries again what could not be watched, and says for which places that
    /// has been mended. For the shell's now-and-then look at degraded paths.
    pub fn mend(&mut self, out: &mut Vec<Input>) {
        if self.directories.is_off() && self.choice != Choice::Off {
            // Perhaps the user has an instance left by now.
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

    /// How many directories are watched, the root included, the fence's not.
    pub fn watched(&self) -> usize {
        self.directories.watched()
    }

    /// The backend's name, for `status`.
    pub fn backend(&self) -> &'static str {
        self.directories.backend.name()
    }

    /// Where less is seen than should be, and why (LOSS-2).
    pub fn degraded(&self) -> Vec<Degraded> {
        let mut list = self.directories.degraded();
        if let Some(cause) = &self.fence_broken {
            list.push(Degraded {
                path: None,
                cause: format!("no fence: {cause}"),
            });
        }
        list.extend(self.hard_links.failed().map(|(path, cause)| Degraded {
            path: Some(path.clone()),
            cause: cause.to_owned(),
        }));
        list
    }

    /// Whether changes of `path` may come without an event, so that it must
    /// be read when it is asked for (LOSS-2).
    pub fn blind(&self, path: &RelPath) -> bool {
        if self.slow_place(path).is_some() {
            return true;
        }
        let entries = self.cover.entries_of(path);
        self.directories.blind(path).is_some()
            || entries.iter().any(|entry| {
                self.directories.blind(entry).is_some() || self.hard_links.has_failed(entry)
            })
    }

    /// The place of which a look at `path` may hang: of a remote file system
    /// that is mounted there, or leads there by a link; the workspace itself if
    /// that is on one.
    pub fn slow_place(&self, path: &RelPath) -> Option<PathBuf> {
        if self.directories.root_is_silent() {
            return Some(self.root.clone());
        }
        let remote = |entry| Some(self.directories.remote(entry)?.0.clone());
        remote(path).or_else(|| self.cover.entries_of(path).iter().find_map(remote))
    }

    /// Where that is mounted which `path` is on, as far as its name says: what
    /// a slow read of it says of its neighbours.
    pub fn mount_of(&self, path: &RelPath) -> PathBuf {
        let mount = self.mounts.of(&absolute(&self.root, path));
        mount.unwrap_or(&self.root).to_path_buf()
    }

    /// A look at a name, without following it; not where that may hang.
    fn look(&self, path: &RelPath) -> io::Result<Metadata> {
        match self.directories.remote(path) {
            Some(_) => Err(io::ErrorKind::WouldBlock.into()),
            None => absolute(&self.root, path).symlink_metadata(),
        }
    }

    /// Whether there is something of that name; taken to be so where a look
    /// may hang.
    fn is_there(&self, path: &RelPath) -> bool {
        match self.look(path) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Whether the workspace's directory was removed or renamed (LIFE-1).
    pub fn root_gone(&self) -> bool {
        self.root_gone
    }

    /// Looks whether the workspace's name still leads to the directory that
    /// is watched; a rename further up makes no event. Returns
    /// [`root_gone`](Self::root_gone).
    pub fn check_root(&mut self) -> bool {
        let same = self
            .root
            .symlink_metadata()
            // One that is being removed has its name for a moment longer.
            .is_ok_and(|metadata| {
                metadata.nlink() > 0 && (metadata.dev(), metadata.ino()) == self.root_identity
            });
        self.root_gone |= !same;
        self.root_gone
    }

    /// Makes the set of names that speak for `path` true again: itself, each
    /// symlink on its way, and where it ends. Returns whether it grew.
    pub fn follow(&mut self, path: &RelPath) -> bool {
        let mut grew = false;
        // A link may change while its target's directory is about to be
        // watched: look again until what is watched is what is there.
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
                    // A file mounted by itself is written by its other name.
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

/// A backend of the wanted kind, or one that says why there is none.
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
