//! The backend on the `notify` crate. Only this file names that crate.

use std::path::PathBuf;
use std::time::Instant;

use notify::event::{AccessKind, AccessMode, EventKindMask, ModifyKind, RenameMode};
use notify::{
    Config, ErrorKind, Event, EventKind, PathOp, RecommendedWatcher, RecursiveMode,
    WatchPathConfig, Watcher as _,
};

use super::backend::{Backend, NO_WATCHES, RawEvent, RawKind, Refused, Sink};

pub(super) struct Notifier {
    inner: RecommendedWatcher,
}

impl Notifier {
    /// Creates a watcher of the `notify` crate.
    ///
    /// # Errors
    /// The system's words, for instance when the user has no inotify instance
    /// left.
    pub(super) fn new(generation: u64, sink: Sink) -> Result<Self, String> {
        // The default mask reports every close, so also every file that a
        // process reads: a build would wake the daemon 100,000 times (LIFE-3).
        let kinds = EventKindMask::CORE | EventKindMask::ACCESS_CLOSE;
        let config = Config::default()
            .with_event_kinds(kinds)
            .with_follow_symlinks(false);
        // The handler must not call the watcher, which would deadlock.
        let handler = move |event: notify::Result<Event>| {
            translate(generation, event, &*sink);
        };
        RecommendedWatcher::new(handler, config)
            .map(|inner| Self { inner })
            .map_err(|error| error.to_string())
    }
}

impl Backend for Notifier {
    fn name(&self) -> &'static str {
        "notify"
    }

    fn watch(&mut self, paths: &[PathBuf]) -> Vec<Result<(), Refused>> {
        let config = WatchPathConfig::new(RecursiveMode::NonRecursive)
            // Watching through a link would give the target's one watch two
            // names, of which only the last is reported.
            .with_dereference_symlinks(false);
        let mut results = Vec::with_capacity(paths.len());
        let mut ops: Vec<_> = paths
            .iter()
            .map(|path| PathOp::Watch(path.clone(), config.clone()))
            .collect();
        while !ops.is_empty() {
            match self.inner.update_paths(ops) {
                Ok(()) => break,
                Err(error) => {
                    let refused = refusal(&error.source);
                    let done = paths.len() - error.remaining.len();
                    if error.origin.is_none() {
                        // The error belongs to no single path: none of the
                        // remaining ones is watched.
                        results.resize(paths.len(), Err(refused));
                        return results;
                    }
                    results.resize(done - 1, Ok(()));
                    results.push(Err(refused));
                    ops = error.remaining;
                }
            }
        }
        results.resize(paths.len(), Ok(()));
        results
    }

    fn unwatch(&mut self, paths: &[PathBuf]) {
        let mut ops: Vec<_> = paths.iter().map(PathOp::unwatch).collect();
        // The call stops at each watch that has already ended (its directory
        // was removed or moved). That one needs nothing more.
        while let Err(error) = self.inner.update_paths(ops) {
            if error.origin.is_none() {
                return;
            }
            ops = error.remaining;
        }
    }
}

fn refusal(error: &notify::Error) -> Refused {
    match &error.kind {
        ErrorKind::PathNotFound => Refused::Absent,
        ErrorKind::Io(io)
            if matches!(
                io.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Refused::Absent
        }
        ErrorKind::MaxFilesWatch => Refused::Because(NO_WATCHES.into()),
        ErrorKind::Io(io) => Refused::Because(io.to_string()),
        other => Refused::Because(format!("{other:?}")),
    }
}

fn translate(generation: u64, event: notify::Result<Event>, sink: &dyn Fn(RawEvent)) {
    let say = |kind, path, cookie| {
        sink(RawEvent {
            generation,
            kind,
            path,
            cookie,
            // `notify` does not report that.
            by_directory: false,
            at: Instant::now(),
        });
    };
    let event = match event {
        Ok(event) => event,
        // The queue could not be read, so its events are lost.
        Err(_) => return say(RawKind::Lost, PathBuf::new(), None),
    };
    // Checked before the paths, since an overflow has none (LOSS-1).
    if event.need_rescan() {
        return say(RawKind::Lost, PathBuf::new(), None);
    }
    let cookie = event.tracker();
    let kind = match event.kind {
        EventKind::Create(_) => RawKind::Created,
        EventKind::Remove(_) => RawKind::Removed,
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => RawKind::Closed,
        // A close of a file that was open for reading only.
        EventKind::Access(_) => return,
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) if cookie.is_some() => {
            RawKind::MovedFrom
        }
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) if cookie.is_some() => RawKind::MovedTo,
        // `From` and `To` have reported the same rename.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) if cookie.is_some() => return,
        EventKind::Modify(ModifyKind::Name(_)) => RawKind::MovedSelf,
        EventKind::Modify(ModifyKind::Metadata(_)) => RawKind::Attributes,
        EventKind::Modify(_) => RawKind::Written,
        // Kinds that a later release adds are at least a reason to look.
        EventKind::Any | EventKind::Other => RawKind::Attributes,
    };
    for path in event.paths {
        say(kind, path, cookie);
    }
}
