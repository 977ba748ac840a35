//! Stores the bytes that a call is about to destroy, before it goes on.
//!
//! Limits bound the cost of a call. A content above a limit is not stored, and its
//! mark says so.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, pread};

use crate::checksum::{SEED, sum};
use crate::marks::{Before, Identity, Stored};
use crate::place::{before, identity, look_at};
use crate::resolve::Place;
use crate::ring::writer::Ring;
use crate::stored::{LARGEST, PACK, pack};

/// The longest time that a call waits for its bytes.
const LONGEST: Duration = Duration::from_millis(5);

/// The most bytes in a second.
const A_SECOND: u64 = 64 << 20;

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
    longest: Duration,
    /// How many bytes of the pack the reader did not need any more, when the ring was
    /// asked last.
    released: u64,
    /// How many bytes are left of this second.
    left: u64,
}

impl Packing {
    /// Makes the pack of a ring. If that is impossible, nothing is stored.
    pub(crate) fn new(ring: &Path) -> Self {
        let mut options = crate::ring::options();
        options.create(true).write(true).mode(0o600);
        Self {
            file: options.open(pack(ring)).ok(),
            known: HashMap::new(),
            buffer: Vec::new(),
            second: Instant::now(),
            longest: LONGEST,
            released: 0,
            left: A_SECOND,
        }
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(File::as_fd)
    }

    /// Stores the content of a file. `end`: the number of bytes that both holders
    /// have put into the pack. Returns where its bytes are; `None` if they are not
    /// stored, or if the file is not any more what was found.
    pub(crate) fn store(&mut self, place: &Place, ring: &Ring, end: &AtomicU64) -> Option<Stored> {
        let (object, found) = (place.object?, place.before?);
        if found.size == 0 {
            return Some(Stored { at: 0, sum: SEED });
        }
        if let Some(known) = self.known.get(&object)
            && known.is_same(&found)
            && known.stored.is_some_and(|it| it.at >= ring.released())
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
        let start = match reserve(end, found.size, self.released) {
            Some(start) => start,
            None => {
                self.released = ring.released();
                reserve(end, found.size, self.released)?
            }
        };
        self.buffer.resize(PART, 0);
        let (mut copied, mut check) = (0, SEED);
        while copied < found.size {
            let most = (found.size - copied).min(PART as u64) as usize;
            let got = pread(&file, &mut self.buffer[..most], copied).ok()?;
            if got == 0 || began.elapsed() >= self.longest {
                return None;
            }
            let part = &self.buffer[..got];
            pack.write_all_at(part, start % PACK + copied).ok()?;
            check = sum(check, part);
            copied += got as u64;
            if got % 8 != 0 && copied < found.size {
                return None;
            }
        }
        self.left -= found.size;
        // A file that has changed since `found` may have been read in part.
        let stat = look_at(file.as_fd()).ok()?;
        if identity(&stat) != object || before(&stat) != Some(found) {
            return None;
        }
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        let stored = Some(Stored {
            at: start,
            sum: check,
        });
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(found.changed);
        if changed.elapsed().is_ok_and(|age| age >= SETTLED) {
            self.known.insert(object, Before { stored, ..found });
        }
        stored
    }
}

/// Returns where the next bytes are put, not over the end of the pack, and counts them.
/// `None` if they do not fit beside those that the reader needs.
fn reserve(end: &AtomicU64, size: u64, released: u64) -> Option<u64> {
    let start = |end: u64| {
        let left = PACK - end % PACK;
        if left < size { end + left } else { end }
    };
    let next = |end| Some(start(end) + size).filter(|it| *it <= released.saturating_add(PACK));
    end.fetch_update(SeqCst, SeqCst, next).ok().map(start)
}

/// Opens a file for reading, never waits, and changes no time where it may.
fn open(path: &[u8]) -> Option<rustix::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(CWD, path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(CWD, path, flags, Mode::empty()).ok(),
        file => file.ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::marks::Chance;
    use crate::place::look;
    use crate::ring::reader::Reader;
    use crate::stored::stored;

    fn place(directory: &Path, name: &str) -> Place {
        let path = directory.join(name);
        let path = path.as_os_str().as_bytes();
        let stat = look(CWD, path, rustix::fs::AtFlags::empty()).unwrap();
        Place {
            directory: Identity::default(),
            path: directory.as_os_str().as_bytes().to_vec(),
            name: name.into(),
            object: Some(identity(&stat)),
            before: before(&stat),
            is_inside: true,
            has_other_names: false,
            chance: Chance::Good,
        }
    }

    #[test]
    fn what_is_released_is_written_over_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        Ring::create(&path, 0).unwrap();
        let (ring, reader) = (Ring::open(&path).unwrap(), Reader::open(&path).unwrap());
        let (mut packing, end) = (Packing::new(&path), AtomicU64::new(0));
        let mut store = |size: u64, byte: u8| {
            packing.left = A_SECOND;
            packing.longest = Duration::MAX;
            let bytes = vec![byte; size as usize];
            fs::write(directory.path().join("f"), &bytes).unwrap();
            let place = place(directory.path(), "f");
            let stored = packing.store(&place, &ring, &end)?;
            let before = Before {
                stored: Some(stored),
                ..place.before.unwrap()
            };
            Some((before, bytes))
        };
        let read = |before: &Before| stored(&File::open(pack(&path)).unwrap(), before).unwrap();
        // They do not fill the pack evenly, so that one does not fit at its end.
        let size = LARGEST - 8;
        let (first, bytes) = store(size, 0).unwrap();
        assert_eq!(read(&first), Some(bytes));
        let mut full = 1;
        while let Some((before, bytes)) = store(size, full as u8) {
            assert_eq!(read(&before), Some(bytes));
            full += 1;
        }
        assert_eq!(full, PACK / size);
        reader.release(2 * size).unwrap();
        let (after, bytes) = store(size, 255).unwrap();
        assert_eq!(read(&after), Some(bytes));
        assert_eq!(read(&first), None, "it is written over");
        assert!(store(LARGEST + 1, 1).is_none());
        assert_eq!(
            store(0, 1).map(|(before, _)| read(&before)),
            Some(Some(Vec::new()))
        );
    }
}
