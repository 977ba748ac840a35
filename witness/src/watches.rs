//! Watches the directories of marked names, from before the first mark on: so
//! it is known whether another process has written a marked file.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD};

use crate::marks::{Event, Identity, Record};
use rustix::time::ClockId;

use crate::place::{identity, look, now};
use crate::resolve::Place;

/// The most directories that are watched. They count for the user's limit.
const MOST: usize = 2048;

/// The most bytes of names in one record.
const NAMES: usize = 8 << 10;

/// The size of an event with the longest name, in bytes, and how many are read together.
const LARGEST: usize = 16 + 256;
const FIT: usize = 60;

/// What is watched. Modifications keep the system from reporting two closes as
/// one: it joins equal events in a row.
const WANTED: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// The directories that this process has put on the queue. The other holder has
/// the same queue: it cannot tell where the events of these come from.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    queue: Option<OwnedFd>,
    of: HashMap<Identity, i32>,
    paths: HashMap<i32, Vec<u8>>,
}

impl Watches {
    /// Makes the queue. Without one, nothing is watched.
    pub(crate) fn new() -> Self {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        Self {
            queue: inotify::init(flags).ok(),
            of: HashMap::new(),
            paths: HashMap::new(),
        }
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.queue.as_ref().map(|queue| queue.as_fd())
    }

    /// Forgets the directories, in a new process.
    pub(crate) fn forget(&mut self) {
        self.of.clear();
        self.paths.clear();
    }

    /// Returns whether a place's directory is watched.
    pub(crate) fn has(&self, place: &Place) -> bool {
        self.of.contains_key(&place.directory)
    }

    /// Watches a place's directory. Returns whether it is watched only from now
    /// on.
    pub(crate) fn add(&mut self, place: &Place) -> bool {
        if self.has(place) || !place.is_inside || place.path.is_empty() || self.of.len() >= MOST {
            return false;
        }
        let Some(queue) = &self.queue else {
            return false;
        };
        let Ok(watch) = inotify::add_watch(queue, &place.path[..], WANTED) else {
            return false;
        };
        let there = look(CWD, &place.path, AtFlags::SYMLINK_NOFOLLOW);
        if !there.is_ok_and(|there| identity(&there) == place.directory) {
            if !self.paths.contains_key(&watch) {
                let _removed = inotify::remove_watch(queue, watch);
            }
            return false;
        }
        self.of.insert(place.directory, watch);
        self.paths.insert(watch, place.path.clone());
        true
    }

    /// Passes on what has happened since the last call.
    pub(crate) fn drain(&mut self, mut record: impl FnMut(&Record)) {
        let Some(queue) = &self.queue else { return };
        let mut space = [MaybeUninit::uninit(); FIT * LARGEST];
        let mut reader = inotify::Reader::new(queue, &mut space);
        let mut batch = Batch::default();
        let mut is_missing = false;
        let mut got = 0;
        loop {
            if reader.is_buffer_empty() {
                // A read that returns fewer events than fit has emptied the queue.
                if (1..FIT).contains(&got) {
                    break;
                }
                got = 0;
            }
            let Ok(event) = reader.next() else { break };
            got += 1;
            let (watch, what) = (event.wd(), event.events());
            if what.contains(ReadFlags::IGNORED) {
                self.paths.remove(&watch);
                self.of.retain(|_, of| *of != watch);
                continue;
            }
            let Some(path) = self.paths.get(&watch) else {
                is_missing = true;
                continue;
            };
            if what.intersects(ReadFlags::MOVE_SELF) {
                // Its path, and those below, are others now.
                is_missing = true;
                self.of.clear();
                continue;
            }
            let happened = happened(what).zip(event.file_name());
            if let Some((what, name)) = happened.filter(|_| !what.contains(ReadFlags::ISDIR)) {
                batch.add(path, what, name.to_bytes(), &mut record);
            }
        }
        batch.end(&mut record);
        if is_missing {
            record(&Record::Missed);
        }
    }
}

/// Events of one directory in a row.
#[derive(Default)]
struct Batch {
    path: Vec<u8>,
    events: Vec<(Event, Vec<u8>)>,
    size: usize,
}

impl Batch {
    fn add(&mut self, path: &[u8], what: Event, name: &[u8], record: impl FnMut(&Record)) {
        if self.path != path || self.size >= NAMES {
            self.end(record);
            self.path = path.to_owned();
        }
        self.size += name.len() + 3;
        self.events.push((what, name.to_owned()));
    }

    fn end(&mut self, mut record: impl FnMut(&Record)) {
        let Self { path, events, .. } = std::mem::take(self);
        if !events.is_empty() {
            record(&Record::Happened {
                realtime: now(ClockId::Realtime),
                path,
                events,
            });
        }
    }
}

fn happened(what: ReadFlags) -> Option<Event> {
    [
        (ReadFlags::CLOSE_WRITE, Event::Closed),
        (ReadFlags::CREATE, Event::Created),
        (ReadFlags::DELETE, Event::Removed),
        (ReadFlags::MOVED_FROM, Event::MovedFrom),
        (ReadFlags::MOVED_TO, Event::MovedTo),
    ]
    .into_iter()
    .find(|(flag, _)| what.contains(*flag))
    .map(|(_, event)| event)
}
