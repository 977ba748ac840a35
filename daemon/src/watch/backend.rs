//! What stands between the watcher and the system's way to watch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where events go. Called by whoever took them from the system, in order: it
/// may only hand over.
pub(super) type Sink = Arc<dyn Fn(RawEvent) + Send + Sync>;

/// What a backend saw, in the order of the system's one queue. Made on the
/// backend's thread and only handed over there; everything else happens in
/// [`Watcher::digest`](super::Watcher::digest).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEvent {
    /// Which making of the backend saw it: after a loss the backend is made
    /// anew, and what the old one still says is of no use.
    pub(super) generation: u64,
    pub(super) kind: RawKind,
    /// Absolute, in the spelling of the watch; empty where there is none.
    pub(super) path: PathBuf,
    /// Joins the two halves of a rename.
    pub(super) cookie: Option<usize>,
    /// The directory that holds it reported it: a file that is watched by
    /// itself has reported what was written to it as well.
    pub(super) by_directory: bool,
}

impl RawEvent {
    /// The news that events were lost.
    #[cfg(test)]
    pub(crate) fn loss(generation: u64) -> Self {
        Self {
            generation,
            kind: RawKind::Lost,
            path: PathBuf::new(),
            cookie: None,
            by_directory: false,
        }
    }

    /// An event of a kind about a path.
    #[cfg(test)]
    pub(crate) fn written(generation: u64, path: &Path) -> Self {
        Self {
            kind: RawKind::Written,
            path: path.to_path_buf(),
            ..Self::loss(generation)
        }
    }

    /// The name it is about, absolute; `None` if it is about none.
    pub fn name(&self) -> Option<&Path> {
        let of_none = matches!(self.kind, RawKind::Lost | RawKind::Fence(_));
        (!of_none).then_some(&*self.path)
    }

    /// Says, in the place of this event, that it and perhaps later ones of its
    /// name were left out.
    #[must_use]
    pub fn into_crowd(self) -> Self {
        Self {
            kind: RawKind::Crowd,
            cookie: None,
            ..self
        }
    }

    /// Whether it says that events of its name were left out.
    pub fn is_crowd(&self) -> bool {
        self.kind == RawKind::Crowd
    }

    /// Says, in the place of this event, that it and later ones were lost.
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

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    /// A file, directory, link or node appeared.
    Created,
    /// Bytes were written or cut off.
    Written,
    /// A descriptor open for writing was closed.
    Closed,
    /// Both, one right after the other.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    WrittenAndClosed,
    /// Mode, owner, times, number of links.
    Attributes,
    /// The name is gone, or the watched thing itself.
    Removed,
    /// The first half of a rename.
    MovedFrom,
    /// The second half of a rename.
    MovedTo,
    /// The watched thing itself was moved.
    MovedSelf,
    /// More happened to this name than can wait: it is to be looked at.
    Crowd,
    /// Events were lost: nothing before this is known to be complete.
    Lost,
    /// Not of the system's: everything that happened before
    /// [`Backend::fence`] was called with this number comes before it.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    Fence(u64),
}

/// Why a path could not be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It does not exist (any more).
    Absent,
    /// It exists, and this is what the system said.
    Because(String),
}

/// A way to watch directories, and files by themselves. One backend is one
/// ordered queue: what it reports comes in the order in which it happened,
/// over all watched places (SYNC-2).
pub(super) trait Backend: Send {
    /// Its name for `status`.
    fn name(&self) -> &'static str;

    /// Watches each path as it is now, without what lies in its directories
    /// and without following a symlink. When this returns, whatever happens
    /// later is reported. A path that is watched already stays so.
    ///
    /// A backend ends by itself the watches at a name that it reports as
    /// removed or moved away, and at all names below: before the next call is
    /// carried out, and even if the name leads to something else by then.
    fn watch(&mut self, paths: &[PathBuf]) -> Vec<Result<(), Refused>>;

    /// Ends watches. A path whose watch the system has already ended is no
    /// error.
    fn unwatch(&mut self, paths: &[PathBuf]);

    /// Whether it can be asked what has happened. If not, only an event of
    /// the system's own can tell that all before it has been reported.
    fn fences(&self) -> bool {
        false
    }

    /// Reports everything that happened until this call, and
    /// [`RawKind::Fence`] behind it; if it [`fences`](Self::fences).
    fn fence(&mut self, _number: u64) {}

    /// Whether an object that is watched by several names stays watched until
    /// the last of them is given up, and is reported by each. If not, giving
    /// up one may end the watch of all.
    fn counts_names(&self) -> bool {
        false
    }
}

/// The backend of a machine where none can be made: everything is degraded,
/// and read when it is asked for (LOSS-2).
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
