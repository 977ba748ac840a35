//! The reader of a ring. The writer is another process: nothing in the file is
//! trusted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::{
    HEADER, LANES, RELEASED, capacity, lost_at, number_at, options, payload_at, reader_at,
};
use crate::marks::{Gap, Record};

/// A lane as its reader has read it.
#[derive(Debug, Default)]
struct Lane {
    /// The position after what [`Reader::next`] has returned.
    tail: u64,
    /// The position after what is in `ahead`.
    position: u64,
    /// The lost calls that were returned as a gap.
    seen: u64,
    /// The next record, its sequence number, and the position after it.
    ahead: VecDeque<(u64, Record, u64)>,
}

/// Reads records, each once, also over restarts of the reader. One reader at a
/// time.
#[derive(Debug)]
pub struct Reader {
    file: File,
    bell: Option<File>,
    capacity: u64,
    lanes: [Lane; LANES],
}

impl Reader {
    /// Opens the ring at this path, and continues where the last reader was.
    ///
    /// # Errors
    /// The system's; [`Damaged`] as `InvalidData` if it is no ring.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = options();
        options.read(true).write(true);
        let file = options.open(path)?;
        let capacity = capacity(&file)?;
        let mut header = [0; HEADER as usize];
        file.read_exact_at(&mut header, 0)?;
        let number = |at: usize| {
            let bytes = header[at..].first_chunk().copied();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        let lanes = [0, 1].map(|lane| {
            let at = reader_at(lane) as usize;
            // A tail is a multiple of 8.
            let tail = number(at) & !7;
            Lane {
                tail,
                position: tail,
                seen: number(at + 16),
                ..Lane::default()
            }
        });
        let bell = options.open(super::bell(path)).ok();
        Ok(Self {
            file,
            bell,
            capacity,
            lanes,
        })
    }

    /// Returns the next record with its sequence number; `None` if there is
    /// none yet. The order is that of the sequence within what is written.
    /// Numbers that are missing are those of lost records or of a writer that
    /// was killed; a gap stands for each.
    ///
    /// # Errors
    /// The system's.
    #[allow(clippy::should_implement_trait)] // It may have more after `None`.
    pub fn next(&mut self) -> io::Result<Option<(u64, Record)>> {
        for lane in 0..LANES {
            self.look(lane);
        }
        let firsts = self.lanes.iter().enumerate();
        let firsts = firsts.filter_map(|(lane, state)| Some((state.ahead.front()?.0, lane)));
        let Some((_, lane)) = firsts.min() else {
            return self.overflow();
        };
        let Some((seq, record, after)) = self.lanes[lane].ahead.pop_front() else {
            return Ok(None);
        };
        self.lanes[lane].tail = after;
        self.save(lane)?;
        Ok(Some((seq, record)))
    }

    /// Announces whether the reader is about to block, so that the writer wakes
    /// it. Call [`Reader::next`] once more after `true`, then poll
    /// [`Reader::bell`].
    ///
    /// # Errors
    /// The system's.
    pub fn waits(&mut self, waits: bool) -> io::Result<()> {
        for lane in 0..LANES {
            let flag = u64::from(waits).to_le_bytes();
            self.file.write_all_at(&flag, reader_at(lane) + 8)?;
        }
        let mut rung = [0; 512];
        if let Some(bell) = self.bell.as_mut().filter(|_| !waits) {
            while bell.read(&mut rung).is_ok_and(|got| got == rung.len()) {}
        }
        Ok(())
    }

    /// Returns the FIFO that is readable when there is more, if the reader has
    /// announced that it waits; `None` if there is no FIFO: then poll by time.
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(AsFd::as_fd)
    }

    /// Returns whether the guardian or the supervisor still runs, which is so
    /// as long as any process of the tree does.
    ///
    /// # Errors
    /// The system's.
    pub fn runs(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                flock(&self.file, FlockOperation::Unlock)?;
                Ok(false)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases the bytes in the pack up to this many: they may be written over.
    ///
    /// # Errors
    /// The system's.
    pub fn release(&self, end: u64) -> io::Result<()> {
        self.file.write_all_at(&end.to_le_bytes(), RELEASED)
    }

    /// Reads the next record of a lane, if none is read ahead.
    fn look(&mut self, lane: usize) {
        let state = &mut self.lanes[lane];
        // At most one filler and one skipped end are before a record. A hostile
        // lane of fillers is read a little each time.
        for _ in 0..64 {
            if !state.ahead.is_empty() {
                return;
            }
            let found = payload_at(&self.file, lane, self.capacity, state.position);
            let Some((payload, after)) = found else {
                return;
            };
            state.position = after;
            if payload.is_empty() {
                continue;
            }
            let (seq, record) = Record::decode(&payload).unwrap_or((
                0,
                Record::Gap {
                    why: Gap::Damaged,
                    pid: 0,
                    calls: 1,
                },
            ));
            state.ahead.push_back((seq, record, after));
        }
    }

    /// Returns the lost calls of the lanes as a gap.
    fn overflow(&mut self) -> io::Result<Option<(u64, Record)>> {
        for lane in 0..LANES {
            let lost = number_at(&self.file, lost_at(lane))?;
            let calls = lost.wrapping_sub(self.lanes[lane].seen);
            if calls != 0 {
                self.lanes[lane].seen = lost;
                self.save(lane)?;
                let why = Gap::Overflow;
                return Ok(Some((0, Record::Gap { why, pid: 0, calls })));
            }
        }
        Ok(None)
    }

    /// Writes how far a lane was read.
    fn save(&self, lane: usize) -> io::Result<()> {
        let state = &self.lanes[lane];
        let at = reader_at(lane);
        self.file.write_all_at(&state.tail.to_le_bytes(), at)?;
        self.file.write_all_at(&state.seen.to_le_bytes(), at + 16)
    }
}
