//! The processes: launcher, guardian, supervisor and target, each the parent of
//! the next.
//!
//! The launcher is the process that was started. It keeps the terminal and ends
//! with the target's status. The guardian and the supervisor hold the listener:
//! one answers, the other watches it and takes over. The target becomes the
//! command.

mod holder;
mod launcher;
mod start;
mod target;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::marks::Refusal;
use crate::ring::writer::{Lane, Ring};
use crate::sys;

/// What [`run`] needs to start a command.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The ring; it is made if it does not exist.
    pub ring: PathBuf,
    /// The directories below which there are marks.
    pub roots: Vec<PathBuf>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Says nothing on the standard error if the command runs unwitnessed.
    pub quiet: bool,
}

/// The capacity of a lane in a ring that is made here, in bytes.
const CAPACITY: u64 = 4 << 20;

/// Memory that all these processes share, at first all zeros.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shared {
    /// The number of the next record.
    pub(crate) seq: AtomicU64,
    /// The state of the ring's lanes.
    pub(crate) lanes: [Lane; 2],
    /// The number of bytes that were put into the pack.
    pub(crate) packed: AtomicU64,
    /// Not 0 after the tree may have another root directory or other mounts.
    pub(crate) views_differ: AtomicU32,
    /// How many directories the tree has renamed or removed.
    pub(crate) moves: AtomicU64,
    /// Not 0 after a call of an unknown architecture was recorded.
    pub(crate) unknown_architecture: AtomicU32,
    /// The two processes that hold the listener.
    slots: [Slot; 2],
    /// Which of them answers.
    primary: AtomicU32,
    /// The target, and when it started.
    target: AtomicU32,
    started: AtomicU64,
    /// How the target ended: `ENDED` and the status as `waitpid` tells it.
    status: AtomicU64,
    /// Not 0 after the last record.
    finished: AtomicU32,
}

/// Says in [`Shared::status`] that the target has ended.
const ENDED: u64 = 1 << 32;

/// What a holder does, for the other one.
#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// The notification that it received and has not answered. The kernel
    /// writes it here, so that it is known whatever happens to the holder.
    words: [AtomicU64; sys::WORDS],
    /// The holder's process; 0 if there is none.
    pid: AtomicU32,
    /// Not 0 if the notification's marks are in the ring.
    is_marked: AtomicU32,
    /// How often it has finished something.
    beats: AtomicU64,
}

impl Slot {
    /// Returns the id of the notification; 0 if there is none.
    fn id(&self) -> u64 {
        self.words[0].load(SeqCst)
    }

    /// Removes the notification.
    fn clear(&self) {
        self.words[0].store(0, SeqCst);
        for word in &self.words[1..] {
            word.store(0, Release);
        }
        self.is_marked.store(0, SeqCst);
    }

    /// Returns the notification.
    fn notification(&self) -> Notification {
        let word = |at: usize| self.words[at].load(SeqCst);
        Notification {
            id: word(0),
            thread: word(1) as u32,
            number: word(2) as u32,
            architecture: (word(2) >> 32) as u32,
            arguments: [4, 5, 6, 7, 8, 9].map(word),
        }
    }
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) id: u64,
    /// The calling thread; 0 if it has no number here.
    pub(crate) thread: u32,
    pub(crate) number: u32,
    pub(crate) architecture: u32,
    pub(crate) arguments: [u64; 6],
}

impl Shared {
    /// Returns the target and the holders.
    pub(crate) fn processes(&self) -> (u32, [u32; 2]) {
        let holders = [0, 1].map(|slot: usize| self.slots[slot].pid.load(SeqCst));
        (self.target.load(SeqCst), holders)
    }

    /// Returns how the target ended, as `waitpid` tells it.
    fn status(&self) -> Option<i32> {
        let status = self.status.load(SeqCst);
        (status & ENDED != 0).then_some(status as u32 as i32)
    }

    /// Keeps how the target ended. The first time counts.
    fn set_status(&self, status: i32) -> bool {
        let status = ENDED | u64::from(status as u32);
        { self.status.compare_exchange(0, status, SeqCst, SeqCst) }.is_ok()
    }
}

/// Runs a command below a witness, and returns the status to exit with: the
/// command's, 128 and the signal's number if a signal ended it, 127 if there is
/// no such program, 126 if it cannot be run. Call it before any thread is
/// started, and exit at once with what it returns.
///
/// If the command cannot be witnessed, it runs without: then this process
/// becomes the command and this function does not return. The standard error
/// says why, in one line, and so does the ring where there is one.
pub fn run(launch: &Launch) -> u8 {
    let words = launch.command.iter();
    let words = words.map(|word| CString::new(word.as_bytes()));
    let Ok(command) = words.collect::<Result<Vec<_>, _>>() else {
        return target::fail(&launch.command, &std::io::ErrorKind::InvalidInput.into());
    };
    let why = match prepare(launch) {
        Ok((ring, shared)) => match start::start(launch, &command, ring, shared) {
            Ok(status) => return status,
            Err(why) => why,
        },
        Err(why) => why,
    };
    target::say(launch, why);
    target::become_command(launch, &command)
}

/// Opens what the processes share, if the system can witness at all.
fn prepare(launch: &Launch) -> Result<(Ring, &'static Shared), Refusal> {
    if crate::filter::program().is_none() {
        return Err(Refusal::Unsupported);
    }
    if kernel() < (5, 9) {
        return Err(Refusal::OldKernel);
    }
    let room = sys::WORDS * size_of::<u64>();
    let sizes = sys::notification_sizes();
    if !sys::has_listeners() || sizes.is_none_or(|sizes| sizes.0 > room || sizes.1 > room) {
        return Err(Refusal::NoSeccomp);
    }
    let _exists = Ring::create(&launch.ring, CAPACITY);
    let ring = Ring::open(&launch.ring).map_err(|_| Refusal::Ring)?;
    let shared = sys::shared::<Shared>().map_err(|_| Refusal::NoHolders)?;
    for lane in 0..shared.lanes.len() {
        ring.adopt(lane, &shared.lanes[lane]);
    }
    Ok((ring, shared))
}

/// Returns the kernel's version, the first two numbers.
fn kernel() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    (number().unwrap_or(0), number().unwrap_or(0))
}
