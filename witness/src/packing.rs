//! Stores the bytes that a call is about to destroy, before it goes on.
//!
//! Limits keep the cost of a call small. What is over a limit is not stored, and
//! the mark says so.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, pread};

use crate::marks::{Before, Identity};
use crate::place::{before, identity, look_at};
use crate::resolve::Place;
use crate::stored::{LARGEST, pack};

/// The longest time that a call waits for its bytes.
const LONGEST: Duration = Duration::from_millis(5);

/// The most bytes in a second.
const A_SECOND: u64 = 64 << 20;

/// The size limit of a pack, in bytes.
const PACK: u64 = 256 << 20;

/// The number of contents that are known to be in the pack.
const KNOWN: usize = 1024;

/// How old a content's time of change must be. The system's clock for files is
/// coarse: a later content may have the same time.
const SETTLED: Duration = Duration::from_millis(50);

/// The number of bytes that are copied together.
const PART: usize = 64 << 10;

/// The writer of a pack.
#[derive(Debug)]
pub(crate) struct Packing {
    file: Option<File>,
    known: HashMap<Identity, Before>,
    buffer: Vec<u8>,
    second: Instant,
    /// How many bytes are left of this second.
    left: u64,
}

impl Packing {
    /// Makes the pack of a ring. If that is impossible, nothing is stored.
    pub(crate) fn new(ring: &Path) -> Self {
        let mut options = OpenOptions::new();
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
        options.create(true).write(true).mode(0o600);
        Self {
            file: options.custom_flags(flags).open(pack(ring)).ok(),
            known: HashMap::new(),
            buffer: Vec::new(),
            second: Instant::now(),
            left: A_SECOND,
        }
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(File::as_fd)
    }

    /// Stores the content of a file. `end` is that of the pack. Returns where its
    /// bytes are; `None` if they are not stored, or if the file is not any more
    /// what was found.
    pub(crate) fn store(&mut self, place: &Place, end: &AtomicU64) -> Option<u64> {
        let (object, found) = (place.object?, place.before?);
        if found.size == 0 {
            return Some(0);
        }
        if let Some(known) = self.known.get(&object)
            && (Before {
                stored: None,
                ..*known
            }) == found
        {
            return known.stored;
        }
        let began = Instant::now();
        if began.duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.left) = (began, A_SECOND);
        }
        if found.size > LARGEST || found.size > self.left || place.path.is_empty() {
            return None;
        }
        let pack = self.file.as_ref()?;
        let mut path = place.path.clone();
        path.push(b'/');
        path.extend_from_slice(&place.name);
        let file = open(&path)?;
        let is_same = || {
            let stat = look_at(file.as_fd());
            stat.is_ok_and(|stat| identity(&stat) == object && before(&stat) == Some(found))
        };
        if !is_same() {
            return None;
        }
        let start = end.fetch_add(found.size, Relaxed);
        if start + found.size > PACK {
            return None;
        }
        self.buffer.resize(PART, 0);
        let mut copied = 0;
        while copied < found.size {
            let most = (found.size - copied).min(PART as u64) as usize;
            let got = pread(&file, &mut self.buffer[..most], copied).ok()?;
            if got == 0 || began.elapsed() >= LONGEST {
                return None;
            }
            pack.write_all_at(&self.buffer[..got], start + copied)
                .ok()?;
            copied += got as u64;
        }
        self.left -= found.size;
        if !is_same() {
            return None;
        }
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(found.changed);
        if changed.elapsed().is_ok_and(|age| age >= SETTLED) {
            let stored = Some(start);
            self.known.insert(object, Before { stored, ..found });
        }
        Some(start)
    }
}

/// Opens a file for reading, never waits, and changes no time where it may.
fn open(path: &[u8]) -> Option<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(CWD, path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(CWD, path, flags, Mode::empty()).ok(),
        file => file.ok(),
    }
}
