//! The backend on inotify (inotify(7)). The system's queue can be emptied at
//! any moment, so a fence is one reading of the queue (SYNC-2). It needs no
//! entry in any directory, and waits for no thread.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{
    CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch,
};
use rustix::io::{Errno, ioctl_fionread};

use super::backend::{Backend, NO_WATCHES, RawEvent, RawKind, Refused, Sink};

/// The events of a watched directory or file. Opens and reads are not among
/// them: a build would wake the daemon 100,000 times (LIFE-3).
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    // Without this, the target of a link would have one watch with two names.
    .union(WatchFlags::DONT_FOLLOW);

/// The events of a directory itself, without those of its entries. They are
/// added to the events for which it is watched already.
const ITSELF: WatchFlags = WatchFlags::DELETE_SELF
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::MASK_ADD);

/// The pause between an event and the reading of the queue, when no fence needs
/// it. A save is a dozen events, and one reading takes all of them. The
/// remaining time of SYNC-6's 20 ms is for reading the file.
const REST: Duration = Duration::from_millis(2);

/// The most bytes that one call takes out of the queue.
const TAKEN: usize = 64 << 10;

/// The size of an event without its name, in bytes, and the unit to which names
/// are padded.
const EVENT: u64 = 16;

/// Whether this system has inotify.
pub(super) const IS_HERE: bool = true;

pub(super) struct Inotify {
    queue: Arc<Mutex<Queue>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Inotify {
    /// Creates an inotify instance, and the thread that reads it.
    ///
    /// # Errors
    /// The system's words, for instance when the user has no inotify instance
    /// left.
    pub(super) fn new(generation: u64, sink: Sink) -> Result<Self, String> {
        let words = |errno: Errno| match errno {
            Errno::MFILE => {
                "the limit of inotify instances is reached (fs.inotify.max_user_instances)".into()
            }
            errno => errno.to_string(),
        };
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(words)?;
        let inotify = Arc::new(inotify);
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(words)?;
        let stop = Arc::new(stop);
        let queue = Arc::new(Mutex::new(Queue {
            inotify: Arc::clone(&inotify),
            buffer: vec![MaybeUninit::uninit(); TAKEN],
            watches: Watches {
                inotify: Arc::clone(&inotify),
                generation,
                sink,
                paths: HashMap::new(),
                others: HashMap::new(),
                numbers: BTreeMap::new(),
                written: None,
            },
        }));
        let (emptied, stopped) = (Arc::clone(&queue), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || empty_now_and_then(&inotify, &stopped, &emptied))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            queue,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Inotify {
    fn drop(&mut self) {
        // The instance must be free when this returns: it may be the user's
        // last.
        let told = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take().filter(|_| told.is_ok()) {
            let _died = thread.join();
        }
    }
}

impl Backend for Inotify {
    fn name(&self) -> &'static str {
        "inotify"
    }

    fn watch(&mut self, paths: &[PathBuf]) -> Vec<Result<(), Refused>> {
        let mut queue = lock(&self.queue);
        // Queued events belong to the names that were watched until now.
        queue.empty();
        let watches = &mut queue.watches;
        paths
            .iter()
            .map(|path| watches.begin(path, WANTED))
            .collect()
    }

    /// All daemons of a user have their files in the same directories. So these
    /// are not watched: the start of one daemon would wake all others.
    fn watch_names(&mut self, files: &[PathBuf], directories: &[PathBuf]) {
        let mut queue = lock(&self.queue);
        queue.empty();
        let files = files.iter().map(|path| (path, WANTED));
        let directories = directories.iter().map(|path| (path, ITSELF));
        for (path, events) in files.chain(directories) {
            let _absent = queue.watches.begin(path, events);
        }
    }

    fn unwatch(&mut self, paths: &[PathBuf]) {
        let mut queue = lock(&self.queue);
        for path in paths {
            queue.watches.end(path);
        }
    }

    fn fences(&self) -> bool {
        true
    }

    fn counts_names(&self) -> bool {
        true
    }

    fn fence(&mut self, number: u64) {
        let mut queue = lock(&self.queue);
        queue.empty();
        queue.watches.say(RawKind::Fence(number), PathBuf::new());
    }
}

/// Reads the queue when no fence needs it. Sleeps until there are events
/// (LIFE-3).
fn empty_now_and_then(inotify: &OwnedFd, stop: &OwnedFd, queue: &Mutex<Queue>) {
    let rest = Timespec {
        tv_sec: 0,
        tv_nsec: REST.subsec_nanos().into(),
    };
    loop {
        let mut both = [
            PollFd::new(inotify, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Without reading the queue, no event would arrive and nothing
            // would report that. So it is treated as a loss.
            Err(_) => return lock(queue).watches.lost(),
        }
        let mut stopped = [PollFd::new(stop, PollFlags::IN)];
        if !matches!(poll(&mut stopped, Some(&rest)), Ok(0) | Err(_)) {
            return;
        }
        lock(queue).empty();
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The system's queue. A thread that empties it passes the events on before it
/// releases the lock, so their order stays.
struct Queue {
    inotify: Arc<OwnedFd>,
    buffer: Vec<MaybeUninit<u8>>,
    watches: Watches,
}

impl Queue {
    /// Passes on all events queued before this call, and perhaps later ones.
    fn empty(&mut self) {
        // Reads as many bytes as are queued now, not until the queue is empty,
        // since a process may write without a pause.
        let mut queued = match ioctl_fionread(&self.inotify) {
            Ok(queued) => queued,
            Err(_) => return self.watches.lost(),
        };
        let mut reader = Reader::new(&*self.inotify, &mut self.buffer);
        while queued > 0 || !reader.is_buffer_empty() {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.watches.lost();
                    break;
                }
            };
            let name = event.file_name().map(std::ffi::CStr::to_bytes);
            let padded = name.map_or(0, |name| (name.len() as u64 + 1).next_multiple_of(EVENT));
            queued = queued.saturating_sub(EVENT + padded);
            self.watches
                .take(event.wd(), event.events(), event.cookie(), name);
        }
        self.watches.hand_over_written();
    }
}

/// The watches, by number and by name.
struct Watches {
    inotify: Arc<OwnedFd>,
    generation: u64,
    sink: Sink,
    paths: HashMap<i32, PathBuf>,
    /// The other names of watched objects. The system has one watch for each
    /// object. Of an object that is watched by several names (hard links, a
    /// directory mounted twice), `paths` has the first name and this all
    /// others. Its watch ends with the last of them (FILE-3).
    others: HashMap<i32, Vec<PathBuf>>,
    /// Sorted by path components, so paths below a directory follow it
    /// directly.
    numbers: BTreeMap<PathBuf, i32>,
    /// The watch and the name of a write that was not passed on yet. Usually
    /// its close is the next event, and the two become one event.
    written: Option<(i32, Vec<u8>)>,
}

impl Watches {
    fn begin(&mut self, path: &Path, events: WatchFlags) -> Result<(), Refused> {
        let number = add_watch(&self.inotify, path, events).map_err(refusal)?;
        if let Some(old) = self.numbers.insert(path.to_owned(), number)
            && old != number
        {
            // The name resolves to another object now.
            self.end_number(path, old);
        }
        match self.paths.get(&number) {
            None => {
                self.paths.insert(number, path.to_owned());
            }
            Some(first) if first == path => {}
            Some(_) => {
                let others = self.others.entry(number).or_default();
                if !others.iter().any(|other| other == path) {
                    others.push(path.to_owned());
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, path: &Path) {
        if let Some(number) = self.numbers.remove(path) {
            self.end_number(path, number);
        }
    }

    fn end_number(&mut self, path: &Path, number: i32) {
        if let Some(others) = self.others.get_mut(&number) {
            match others.iter().position(|other| other == path) {
                Some(at) => {
                    others.swap_remove(at);
                }
                None => {
                    // The first name is removed, another replaces it.
                    if self.paths.get(&number).is_some_and(|of| of == path)
                        && let Some(next) = others.pop()
                    {
                        self.paths.insert(number, next);
                    }
                }
            }
            if others.is_empty() {
                self.others.remove(&number);
            }
            return;
        }
        if self.paths.get(&number).is_some_and(|of| of == path) {
            self.paths.remove(&number);
            let _ended_already = remove_watch(&self.inotify, number);
        }
    }

    /// Ends the watch at `path`, which was removed or moved away, and those
    /// below. Their inodes may have other names now.
    fn end_below(&mut self, path: &Path) {
        let below: Vec<PathBuf> = self
            .numbers
            .range::<Path, _>((Bound::Included(path), Bound::Unbounded))
            .map(|(watched, _)| watched)
            .take_while(|watched| watched.starts_with(path))
            .cloned()
            .collect();
        for watched in below {
            self.end(&watched);
        }
    }

    fn say(&self, kind: RawKind, path: PathBuf) {
        self.say_as(kind, path, None, false);
    }

    fn say_as(&self, kind: RawKind, path: PathBuf, cookie: Option<usize>, by_directory: bool) {
        (self.sink)(RawEvent {
            generation: self.generation,
            kind,
            path,
            cookie,
            by_directory,
            at: Instant::now(),
        });
    }

    fn lost(&self) {
        self.say(RawKind::Lost, PathBuf::new());
    }

    fn take(&mut self, number: i32, what: ReadFlags, cookie: u32, name: Option<&[u8]>) {
        let bytes = name.unwrap_or_default();
        let waits = self.written.as_ref();
        let goes_on = waits.is_some_and(|(watch, written)| *watch == number && written == bytes);
        if goes_on && what == ReadFlags::MODIFY {
            return;
        }
        if goes_on && what == ReadFlags::CLOSE_WRITE {
            self.written = None;
            return self.say_of(number, name, RawKind::WrittenAndClosed);
        }
        self.hand_over_written();
        if what == ReadFlags::MODIFY {
            self.written = Some((number, bytes.to_vec()));
        } else {
            self.translate(number, what, cookie, name);
        }
    }

    fn hand_over_written(&mut self) {
        if let Some((number, name)) = self.written.take() {
            let name = (!name.is_empty()).then_some(&*name);
            self.say_of(number, name, RawKind::Written);
        }
    }

    /// Returns the paths of an event, one for each name of the watched object.
    /// None if it is no longer watched: the queue may still contain events of
    /// an ended watch.
    fn paths_of(&self, number: i32, name: Option<&[u8]>) -> impl Iterator<Item = PathBuf> {
        let others = self.others.get(&number).into_iter().flatten();
        self.paths
            .get(&number)
            .into_iter()
            .chain(others)
            .map(move |watched| match name {
                Some(name) => watched.join(OsStr::from_bytes(name)),
                None => watched.clone(),
            })
    }

    fn say_of(&self, number: i32, name: Option<&[u8]>, kind: RawKind) {
        // A write to a file that is watched separately is reported once: the
        // watcher has its other names on record.
        let most = if name.is_some() { usize::MAX } else { 1 };
        for path in self.paths_of(number, name).take(most) {
            self.say_as(kind, path, None, name.is_some());
        }
    }

    fn translate(&mut self, number: i32, what: ReadFlags, cookie: u32, name: Option<&[u8]>) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.lost();
        }
        if what.contains(ReadFlags::IGNORED) {
            // The system has ended this watch.
            for path in self.paths_of(number, None).collect::<Vec<_>>() {
                if self.numbers.get(&path) == Some(&number) {
                    self.numbers.remove(&path);
                }
            }
            self.paths.remove(&number);
            self.others.remove(&number);
            return;
        }
        let kinds = [
            (ReadFlags::CREATE, RawKind::Created),
            (ReadFlags::MODIFY, RawKind::Written),
            (ReadFlags::CLOSE_WRITE, RawKind::Closed),
            (ReadFlags::ATTRIB, RawKind::Attributes),
            (ReadFlags::MOVED_TO, RawKind::MovedTo),
            (ReadFlags::MOVED_FROM, RawKind::MovedFrom),
            (ReadFlags::MOVE_SELF, RawKind::MovedSelf),
            (ReadFlags::DELETE, RawKind::Removed),
            (ReadFlags::DELETE_SELF, RawKind::Removed),
            (ReadFlags::UNMOUNT, RawKind::Removed),
        ];
        let Some((_, kind)) = kinds.iter().find(|(flag, _)| what.contains(*flag)) else {
            return;
        };
        if *kind == RawKind::Closed {
            return self.say_of(number, name, *kind);
        }
        let cookie = (cookie != 0).then_some(cookie as usize);
        for path in self.paths_of(number, name).collect::<Vec<_>>() {
            if matches!(kind, RawKind::Removed | RawKind::MovedFrom) {
                self.end_below(&path);
            }
            self.say_as(*kind, path, cookie, name.is_some());
        }
    }
}

fn refusal(errno: Errno) -> Refused {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Refused::Absent,
        Errno::NOSPC => Refused::Because(NO_WATCHES.into()),
        errno => Refused::Because(errno.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs::{self, File};
    use std::io::Write as _;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_write_and_its_close_are_one_unless_something_comes_between() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for name in ["a", "b"] {
            fs::write(at(name), "old").unwrap();
        }
        let (sender, events) = mpsc::channel();
        let sink = move |event| sender.send(event).unwrap();
        let mut inotify = Inotify::new(1, Arc::new(sink)).unwrap();
        assert_eq!(inotify.watch(&[home.path().to_owned()]), [Ok(())]);
        // While this lock is held, no other thread empties the queue.
        let queue = Arc::clone(&inotify.queue);
        let mut told = |happening: &dyn Fn()| {
            let held = lock(&queue);
            happening();
            drop(held);
            inotify.fence(1);
            std::iter::from_fn(|| events.recv().ok())
                .take_while(|event: &RawEvent| event.kind != RawKind::Fence(1))
                .map(|event| (event.kind, event.path.file_name().unwrap().to_owned()))
                .map(|(kind, name)| format!("{kind:?}({})", name.display()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let both = told(&|| {
            fs::write(at("a"), "new").unwrap();
            fs::write(at("b"), "new").unwrap();
        });
        assert_eq!(both, "WrittenAndClosed(a) WrittenAndClosed(b)");
        let mixed = told(&|| {
            let mut files = [
                File::create(at("a")).unwrap(),
                File::create(at("b")).unwrap(),
            ];
            for file in &mut files {
                file.write_all(b"newer").unwrap();
            }
        });
        assert_eq!(
            mixed,
            "Written(a) Written(b) Written(a) Written(b) Closed(a) Closed(b)"
        );
        let open = told(&|| {
            let mut file = File::options().append(true).open(at("a")).unwrap();
            file.write_all(b"more").unwrap();
            std::mem::forget(file);
        });
        assert_eq!(open, "Written(a)");
    }
}
