//! The ring: a file with two lanes of records, one for each process that
//! witnesses, so that no lane ever has two writers.
//!
//! Writers and reader use `pread` and `pwrite` only. A mapping would end its
//! process with SIGBUS where the file is cut short or the file system is full,
//! and an exit of both witnesses makes the tree's calls fail. A record has its
//! position and a checksum in front of it: it exists if both are right, so that
//! a half-written one is none.
//!
//! ```text
//! 0      magic, version, lanes, capacity of a lane in bytes
//! 256    lane 0: calls lost            512   lane 1: the same
//! 1024   lane 0: tail, waiting, seen   1280  lane 1: the same   (the reader's)
//! 1536   how often the reader has asked for all events, and how many bytes of
//!        the pack it needs no more                        (the reader's)
//! 1792   how many of these are answered
//! 4096   lane 0                        4096 + capacity: lane 1
//! ```

pub(crate) mod fence;
pub(crate) mod reader;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
pub(crate) mod writer;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;

use crate::checksum::{SEED, sum};

/// The first 8 bytes of a ring.
const MAGIC: u64 = u64::from_le_bytes(*b"tmwitnes");

/// The version of this layout.
const VERSION: u32 = 1;

/// The number of lanes: the guardian's and the supervisor's.
pub(crate) const LANES: usize = 2;

/// The size of the header, in bytes.
const HEADER: u64 = 4096;

/// Position, length and checksum, in bytes.
const FRAME: u64 = 16;

/// The most bytes of a record with its frame. A path and a name or a program
/// and a command line have at most 4,096 bytes each.
const LARGEST: u64 = 16 * 1024;

/// The fewest and most bytes of a lane.
const CAPACITIES: std::ops::RangeInclusive<u64> = 4 * LARGEST..=1 << 30;

/// The file is no ring of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the file is no ring of this version")
    }
}

impl std::error::Error for Damaged {}

/// Makes a new ring at this path, with two FIFOs next to it. `capacity` is in
/// bytes, for each of the two lanes; at least 64 KiB and at most 1 GiB are
/// taken.
///
/// # Errors
/// The system's, also if the file exists.
#[cfg(target_os = "linux")]
pub fn create(path: &std::path::Path, capacity: u64) -> std::io::Result<()> {
    writer::Ring::create(path, capacity)
}

/// Returns the paths of a ring and of all files that belong to it.
pub fn files(ring: &std::path::Path) -> [std::path::PathBuf; 4] {
    [
        ring.into(),
        bell(ring),
        asks(ring),
        crate::stored::pack(ring),
    ]
}

/// Returns where a lane's lost calls are counted.
fn lost_at(lane: usize) -> u64 {
    256 * (1 + lane as u64)
}

/// Returns where the reader's tail, its flag that it waits, and its last seen
/// count of lost calls are.
fn reader_at(lane: usize) -> u64 {
    1024 + 256 * lane as u64
}

/// Where the reader's questions and the witness's answers are counted.
const ASKED: u64 = 1536;
const RELEASED: u64 = 1544;
const ANSWERED: u64 = 1792;

/// The answer of a witness that has ended, to all that will be asked.
const ENDED: u64 = u64::MAX;

/// Reads a number at a place of the file.
fn number_at(file: &std::fs::File, at: u64) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt as _;
    let mut number = [0; 8];
    file.read_exact_at(&mut number, at)?;
    Ok(u64::from_le_bytes(number))
}

/// Returns where in the file a lane's position is.
fn place(lane: usize, capacity: u64, position: u64) -> u64 {
    HEADER + lane as u64 * capacity + position % capacity
}

/// Returns how many bytes are left before the lane's end. A record never goes
/// over it.
fn left(capacity: u64, position: u64) -> u64 {
    capacity - position % capacity
}

/// Returns the bytes that a payload takes in a lane.
fn taken(payload: u64) -> u64 {
    (FRAME + payload).next_multiple_of(8)
}

/// Returns the checksum of a record at a position.
fn checksum(position: u64, payload: &[u8]) -> u32 {
    let start = [position, payload.len() as u64].map(u64::to_le_bytes);
    let sum = sum(sum(SEED, start.as_flattened()), payload);
    (sum ^ (sum >> 32)) as u32
}

/// Returns the length of the payload that a frame announces; `None` if it is
/// not the frame of a record at this position.
fn framed(frame: &[u8; FRAME as usize], position: u64, left: u64) -> Option<(u64, u32)> {
    let at = u64::from_le_bytes(*frame.first_chunk()?);
    let length = u64::from(u32::from_le_bytes(*frame[8..].first_chunk()?));
    let sum = u32::from_le_bytes(*frame[12..].first_chunk()?);
    let fits = taken(length) <= left && taken(length) <= LARGEST;
    (at == position && fits).then_some((length, sum))
}

/// Returns the payload at a position of a lane, if a whole record is there, and
/// the position after it. An empty payload fills the lane's end.
fn payload_at(
    file: &std::fs::File,
    lane: usize,
    capacity: u64,
    position: u64,
) -> Option<(Vec<u8>, u64)> {
    use std::os::unix::fs::FileExt as _;
    let left = left(capacity, position);
    if left < FRAME {
        return Some((Vec::new(), position.checked_add(left)?));
    }
    // One read covers most records.
    let mut bytes = vec![0; 512.min(left) as usize];
    let place = place(lane, capacity, position);
    let got = file.read_at(&mut bytes, place).ok()?;
    let (length, sum) = framed(bytes[..got].first_chunk()?, position, left)?;
    let whole = (FRAME + length) as usize;
    if got < whole {
        bytes.resize(whole, 0);
        file.read_exact_at(&mut bytes[got..], place + got as u64)
            .ok()?;
    }
    let payload = bytes.get(FRAME as usize..whole)?.to_owned();
    // An empty payload is a filler: the next record is at the lane's start.
    let size = if length == 0 { left } else { taken(length) };
    let after = position.checked_add(size)?;
    (checksum(position, &payload) == sum).then_some((payload, after))
}

/// Returns the capacity of a lane, in bytes.
///
/// # Errors
/// [`Damaged`] as `InvalidData` if the file is no ring.
fn capacity(file: &std::fs::File) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt as _;
    let damaged = || std::io::Error::new(std::io::ErrorKind::InvalidData, Damaged);
    let mut header = [0; 24];
    let is_file = file.metadata()?.is_file();
    file.read_exact_at(&mut header, 0).map_err(|_| damaged())?;
    let number = |at: usize| {
        let bytes = header[at..].first_chunk().copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let version = u64::from(VERSION) | (LANES as u64) << 32;
    let capacity = number(16);
    let is_whole = is_file
        && number(0) == MAGIC
        && number(8) == version
        && CAPACITIES.contains(&capacity)
        && capacity.is_multiple_of(8);
    is_whole.then_some(capacity).ok_or_else(damaged)
}

/// Returns the path of the FIFO that wakes the reader.
fn bell(ring: &std::path::Path) -> std::path::PathBuf {
    beside(ring, ".bell")
}

/// Returns the path of the FIFO that wakes the witness.
fn asks(ring: &std::path::Path) -> std::path::PathBuf {
    beside(ring, ".asks")
}

/// Returns options to open such a file: it never waits and follows no link.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    options.custom_flags(flags.bits() as i32);
    options
}

/// Returns the path of a file next to a ring.
pub(crate) fn beside(ring: &std::path::Path, end: &str) -> std::path::PathBuf {
    let mut path = ring.as_os_str().to_owned();
    path.push(end);
    path.into()
}
