//! The interface between the watcher and the system's means of watching.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Receives the events, in order. It is called on the thread that took them
/// from the system, and may only pass them on.
pub(super) type Sink = Arc<dyn Fn(RawEvent) + Send + Sync>;

/// An event of a backend, in the order of the system's one queue. The backend's
/// thread only creates it and passes it on. Everything else is done in
/// [`Watcher::digest`](super::Watcher::digest).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// The number of the backend that made it. After a loss of events a new
    /// backend is created, and later events of the old one are ignored.
    pub(super) generation: u64,
    pub(super) kind: RawKind,
    /// The absolute path, spelled as in the watch; empty if there is none.
    pub(super) path: PathBuf,
    /// The same number in the two halves of a rename.
    pub(super) cookie: Option<usize>,
    /// The event was reported by the watch on the parent directory. If the file
    /// is watched separately, its own watch has reported the write as well.
    pub(super) by_directory: bool,
    /// When it was taken from the system. It may be digested much later.
    pub(super) at: Instant,
}

/// The time of all events that tests make, so that they can be compared.
#[cfg(test)]
static TESTED: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

impl RawEvent {
    /// Returns the event that reports a loss of events.
    #[cfg(test)]
    pub(crate) fn loss(generation: u64) -> Self {
        Self {
            generation,
            kind: RawKind::Lost,
            path: PathBuf::new(),
            cookie: None,
            by_directory: false,
            at: *TESTED,
        }
    }

    /// Returns the event of a write to a path.
    #[cfg(test)]
    pub(crate) fn written(generation: u64, path: &Path) -> Self {
        Self {
            kind: RawKind::Written,
            path: path.to_path_buf(),
            ..Self::loss(generation)
        }
    }

    /// Returns the absolute path that the event is about, or `None` if it is
    /// about no path.
    pub fn name(&self) -> Option<&Path> {
        let of_none = matches!(self.kind, RawKind::Lost | RawKind::Fence(_));
        (!of_none).then_some(&*self.path)
    }

    /// Returns the event that replaces this one: it reports that this event,
    /// and perhaps later ones of its path, were left out.
    #[must_use]
    pub fn into_crowd(self) -> Self {
        Self {
            kind: RawKind::Crowd,
            cookie: None,
            ..self
        }
    }

    /// Returns whether this event reports that events of its path were left
    /// out.
    pub fn is_crowd(&self) -> bool {
        self.kind == RawKind::Crowd
    }

    /// Returns the event that replaces this one: it reports that this event and
    /// later ones were lost.
    #[must_use]
    pub fn into_loss(self) -> Self {
        Self {
            kind: RawKind::Lost,
            path: PathBuf::new(),
            cookie: None,
            ..self
        }
    }
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    /// A file, directory, link or node appeared.
    Created,
    /// Content was written or truncated.
    Written,
    /// A descriptor open for writing was closed.
    Closed,
    /// Content was written, and immediately afterwards a descriptor open for
    /// writing was closed.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    WrittenAndClosed,
    /// The mode, the owner, the times or the number of links changed.
    Attributes,
    /// The name, or the watched object itself, was removed.
    Removed,
    /// The first half of a rename.
    MovedFrom,
    /// The second half of a rename.
    MovedTo,
    /// The watched object itself was moved.
    MovedSelf,
    /// Too many events of this path to queue all of them: look at the path.
    Crowd,
    /// Events were lost, so everything may have changed.
    Lost,
    /// Made by the backend, not the system: all events that happened before
    /// [`Backend::fence`] was called with this number come before it.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    Fence(u64),
}

/// The cause at the system's limit of watches.
pub(super) const NO_WATCHES: &str =
    "the limit of inotify watches is reached (fs.inotify.max_user_watches)";

/// Why a path could not be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The path does not exist, or no longer.
    Absent,
    /// The path exists. Contains the system's error message.
    Because(String),
}

/// A way to watch directories, and single files. One backend is one ordered
/// queue: it reports events in the order in which they happened, across all
/// watched places (SYNC-2).
pub(super) trait Backend: Send {
    /// Returns the backend's name for `status`.
    fn name(&self) -> &'static str;

    /// Watches each path as it is now, without the content of subdirectories
    /// and without following a symlink. Everything that happens after the
    /// return is reported. A path that is watched already stays watched.
    ///
    /// When a backend reports a name as removed or moved away, it ends the
    /// watches at that name and at all names below by itself. It does so before
    /// the next call takes effect, and even if the name resolves to another
    /// object by then.
    fn watch(&mut self, paths: &[PathBuf]) -> Vec<Result<(), Refused>>;

    /// Watches the names of these files, which are outside the workspace, and
    /// of the directories that contain them. What happens to other names in
    /// these directories may be reported too. A name that does not exist is
    /// left out.
    fn watch_names(&mut self, _files: &[PathBuf], directories: &[PathBuf]) {
        let _unwatched = self.watch(directories);
    }

    /// Ends watches. It is no error if the system has already ended one of
    /// them.
    fn unwatch(&mut self, paths: &[PathBuf]);

    /// Returns whether the backend can empty the system's queue when a fence is
    /// made. If not, only the arrival of an event shows that all earlier events
    /// were reported.
    fn fences(&self) -> bool {
        false
    }

    /// Reports everything that happened before this call, then
    /// [`RawKind::Fence`]. Called only if [`fences`](Self::fences) returns
    /// true.
    fn fence(&mut self, _number: u64) {}

    /// Returns whether an object that is watched by several names stays watched
    /// until the last of them is released, and is reported by each name. If
    /// not, releasing one name may end the watch of all.
    fn counts_names(&self) -> bool {
        false
    }
}

/// The backend where none can be created: all paths are degraded, and are read
/// for each query (LOSS-2).
pub(super) struct NoBackend {
    pub(super) cause: String,
}

impl NoBackend {
    pub(super) const NAME: &str = "none";
}

impl Backend for NoBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn watch(&mut self, paths: &[PathBuf]) -> Vec<Result<(), Refused>> {
        vec![Err(Refused::Because(self.cause.clone())); paths.len()]
    }

    fn unwatch(&mut self, _paths: &[PathBuf]) {}
}
