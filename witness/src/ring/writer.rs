//! The writer of one lane.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{FlockOperation, Mode, flock, mkfifoat};

use super::{
    ANSWERED, ASKED, CAPACITIES, ENDED, FRAME, HEADER, LANES, LARGEST, MAGIC, RELEASED, VERSION,
    asks, bell, capacity, checksum, left, lost_at, number_at, options, payload_at, place,
    reader_at, taken,
};
use crate::marks::Record;

/// The state of a lane that its next writer continues from.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Lane {
    head: AtomicU64,
    tail: AtomicU64,
    lost: AtomicU64,
}

/// The file, with what wakes its reader.
#[derive(Debug)]
pub(crate) struct Ring {
    file: File,
    bell: Option<File>,
    /// Readable when the reader has asked for all events.
    asks: Option<File>,
    capacity: u64,
}

impl Ring {
    /// Makes a new ring, which no process writes yet. `capacity` is in bytes, per
    /// lane.
    ///
    /// # Errors
    /// The system's, also if the file exists.
    pub(crate) fn create(path: &Path, capacity: u64) -> io::Result<()> {
        let capacity = capacity.clamp(*CAPACITIES.start(), *CAPACITIES.end()) & !7;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(path)?;
        // The header is allocated, so that counting lost calls never fails.
        let mut header = vec![0; HEADER as usize];
        header[16..24].copy_from_slice(&capacity.to_le_bytes());
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(LANES as u32).to_le_bytes());
        file.write_all(&header)?;
        file.set_len(HEADER + LANES as u64 * capacity)?;
        for fifo in [bell(path), asks(path)] {
            mkfifoat(rustix::fs::CWD, fifo, Mode::RUSR | Mode::WUSR)?;
        }
        // Last, so that a reader finds a whole header or none.
        file.write_all_at(&MAGIC.to_le_bytes(), 0)
    }

    /// Opens a ring to write it, and locks it: the lock is free when the last
    /// process that has the ring exits.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if another tree writes it; [`Damaged`] as
    /// `InvalidData` if it is no ring.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = options();
        options.read(true).write(true);
        let file = options.open(path)?;
        let capacity = capacity(&file)?;
        // The reader has the lock for moments, to see whether a writer has it.
        let mut tries = 0;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            tries += 1;
            if tries == 20 {
                return Err(error.into());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // Open for both, so that it never blocks and never breaks.
        let bell = options.open(bell(path)).ok();
        let asks = options.open(asks(path)).ok();
        Ok(Self {
            file,
            bell,
            asks,
            capacity,
        })
    }

    /// Returns the descriptors of the ring.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.file), self.bell.as_ref(), self.asks.as_ref()]
            .into_iter()
            .flatten()
            .map(AsFd::as_fd)
    }

    /// Returns what is readable when the reader asks for all events.
    pub(crate) fn asks(&self) -> Option<&File> {
        self.asks.as_ref()
    }

    /// Returns how often the reader has asked.
    pub(crate) fn asked(&self) -> u64 {
        let mut bytes = [0; 64];
        let mut asks = self.asks.as_ref();
        while asks
            .as_mut()
            .is_some_and(|asks| asks.read(&mut bytes).is_ok())
        {}
        number_at(&self.file, ASKED).unwrap_or_default()
    }

    /// Returns how many bytes of the pack the reader needs no more.
    pub(crate) fn released(&self) -> u64 {
        number_at(&self.file, RELEASED).unwrap_or_default()
    }

    /// Tells the reader that everything is recorded which had happened when it
    /// asked for the last of this many times.
    pub(crate) fn answer(&self, asked: u64) {
        let _damaged = self.file.write_all_at(&asked.to_le_bytes(), ANSWERED);
    }

    /// Tells the reader that nothing will be recorded any more.
    pub(crate) fn end(&self) {
        self.answer(ENDED);
    }

    /// Finds the end of what the lane's last writer has written, which may have
    /// exited before it counted a record.
    pub(crate) fn adopt(&self, lane: usize, state: &Lane) {
        while let Some((_, after)) =
            payload_at(&self.file, lane, self.capacity, state.head.load(Relaxed))
        {
            state.head.store(after, Relaxed);
        }
    }

    /// Appends a record. Never blocks; what does not fit is counted as lost.
    /// [`Ring::announce`] must follow soon.
    pub(crate) fn append(&self, lane: usize, state: &Lane, seq: u64, record: &Record) {
        let mut bytes = Vec::with_capacity(512);
        bytes.resize(FRAME as usize, 0);
        record.encode(seq, &mut bytes);
        if self.put(lane, state, &mut bytes).is_some() {
            return;
        }
        // The reader may have made room.
        self.announce(lane, state);
        if self.put(lane, state, &mut bytes).is_none() {
            let lost = state.lost.fetch_add(1, Relaxed) + 1;
            let _counted = self.file.write_all_at(&lost.to_le_bytes(), lost_at(lane));
        }
    }

    /// Wakes the reader if it waits, and notes how far it has read.
    pub(crate) fn announce(&self, lane: usize, state: &Lane) {
        let mut flags = [0; 16];
        if self.file.read_exact_at(&mut flags, reader_at(lane)).is_ok() {
            let [tail, waiting] = [0, 8].map(|at| flags[at..].first_chunk().copied());
            let tail = u64::from_le_bytes(tail.unwrap_or_default());
            state.tail.store(tail, Relaxed);
            if waiting != Some([0; 8]) {
                self.ring();
            }
        }
    }

    /// Wakes the reader. A full FIFO wakes it as well.
    fn ring(&self) {
        if let Some(mut bell) = self.bell.as_ref() {
            let _full = bell.write(&[1]);
        }
    }

    /// Writes a record's bytes, framed; `None` if they do not fit.
    fn put(&self, lane: usize, state: &Lane, bytes: &mut [u8]) -> Option<()> {
        let need = taken(bytes.len() as u64 - FRAME);
        let mut head = state.head.load(Relaxed);
        let remaining = left(self.capacity, head);
        let fill = if need > remaining { remaining } else { 0 };
        // The tail is the reader's: one that is wrong leaves no room.
        let used = head.checked_sub(state.tail.load(Relaxed))?;
        if need > LARGEST || used + fill + need > self.capacity {
            return None;
        }
        if fill >= FRAME {
            let mut filler = [0; FRAME as usize];
            // Its payload is empty, and the reader goes on at the lane's start.
            frame(&mut filler, head);
            self.write(lane, head, &filler)?;
        }
        if fill > 0 {
            head += fill;
            state.head.store(head, Relaxed);
        }
        frame(bytes, head);
        self.write(lane, head, bytes)?;
        state.head.store(head + need, Relaxed);
        Some(())
    }

    fn write(&self, lane: usize, position: u64, bytes: &[u8]) -> Option<()> {
        let place = place(lane, self.capacity, position);
        self.file.write_all_at(bytes, place).ok()
    }
}

/// Writes position, length and checksum in front of a payload.
fn frame(bytes: &mut [u8], position: u64) {
    let (frame, payload) = bytes.split_at_mut(FRAME as usize);
    frame[..8].copy_from_slice(&position.to_le_bytes());
    frame[8..12].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame[12..].copy_from_slice(&checksum(position, payload).to_le_bytes());
}
