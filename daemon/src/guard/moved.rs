//! The last net: files that have lost their name to a guarded write are held
//! open for a moment and looked at again. Somebody may have found the old file
//! just before it was moved and written to it just after (GUARD-1).
//!
//! Whoever did that has the file open. So a file is let go as soon as nobody
//! has it open for writing any more, which a lease tells: a file that is held
//! keeps its file system from being unmounted.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use touchmark_proto::{Hash, RelPath};

use super::content::{self, Stamp};
use super::lease::Lease;
use super::leased::{Kind, Refused};
use crate::system::disk;

/// How long a file is held at least. An open that had found the file before it
/// was moved is done within that time, and is seen from then on.
const FIRST: Duration = Duration::from_millis(250);

/// How long it is held at most, while somebody has it open for writing. Also
/// where no lease tells whether anybody has; on another file system than the
/// workspace's, which may be about to be unmounted, only for [`FIRST`] then.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// Files held at most; the oldest is given up for a new one.
const MOST: usize = 256;

/// Room that they take up at most, in bytes, and of what is left on their file
/// system one in so many. The oldest are given up first, after a last look.
const MOST_BYTES: u64 = 256 << 20;
const OF_ROOM: u64 = 4;

/// A file without a name.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) file: File,
    /// As it was asked for, and its own name.
    pub(super) path: RelPath,
    pub(super) real: RelPath,
    /// What it held when it was looked at last.
    hash: Hash,
    stamp: Option<Stamp>,
    since: Instant,
    /// When to look whether it is still needed.
    next: Instant,
}

/// All that are held.
#[derive(Debug, Default)]
pub(super) struct Net {
    held: Mutex<Vec<Moved>>,
    /// When the next is due. Told apart, so that the loop need not wait for
    /// who looks; `None` if nothing is held, or somebody does look.
    next: Mutex<Option<Instant>>,
    /// The workspace's file system.
    device: Option<u64>,
}

impl Net {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            device: root.metadata().ok().map(|metadata| metadata.dev()),
            ..Self::default()
        }
    }

    /// Gives up all, since room is short.
    pub(super) fn give_up(&self, mut changed: impl FnMut(&Moved)) -> bool {
        let mut held = lock(&self.held);
        let any = !held.is_empty();
        for mut moved in held.drain(..) {
            moved.look(true, &mut changed);
        }
        self.plan(&held);
        any
    }

    /// Holds a file that held `hash`. What falls out of the net for it has
    /// been looked at by `changed`.
    pub(super) fn hold(
        &self,
        file: File,
        (path, real): (&RelPath, &RelPath),
        hash: Hash,
        mut changed: impl FnMut(&Moved),
    ) {
        let mut held = lock(&self.held);
        let room = disk::room_at(&file).map_or(MOST_BYTES, |room| room / OF_ROOM);
        let mut left = MOST_BYTES.min(room).saturating_sub(taken(&file));
        let kept = held.iter().rev().take(MOST - 1).take_while(|moved| {
            let fits = left.checked_sub(taken(&moved.file));
            left = fits.unwrap_or_default();
            fits.is_some()
        });
        let over = held.len() - kept.count();
        for mut moved in held.drain(..over) {
            moved.look(true, &mut changed);
        }
        let since = Instant::now();
        held.push(Moved {
            file,
            path: path.clone(),
            real: real.clone(),
            hash,
            stamp: None,
            since,
            next: since + FIRST,
        });
        self.plan(&held);
    }

    /// Looks again at the files of one path; `changed` is told of those that
    /// hold something else now. Not while others look at all.
    pub(super) fn look_at(&self, path: &RelPath, mut changed: impl FnMut(&Moved)) {
        let mut held = match self.held.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        for moved in held.iter_mut() {
            if moved.path == *path || moved.real == *path {
                moved.look(false, &mut changed);
            }
        }
    }

    /// Looks thoroughly at all, and lets those go that nobody writes to.
    pub(super) fn look_at_all(&self, mut changed: impl FnMut(&Moved)) {
        let mut held = lock(&self.held);
        held.retain_mut(|moved| {
            // Asked before the look, which then sees all that was written by
            // whoever has closed the file.
            let pause = moved.pause(self.device);
            moved.look(true, &mut changed);
            let Some(pause) = pause else { return false };
            moved.next = Instant::now() + pause;
            true
        });
        self.plan(&held);
    }

    /// The room that all take up.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> u64 {
        lock(&self.held)
            .iter()
            .map(|moved| taken(&moved.file))
            .sum()
    }

    /// When the next is to be looked at.
    pub(super) fn next(&self) -> Option<Instant> {
        *lock(&self.next)
    }

    /// Whether a look is due by now. It is the caller's to see to it that
    /// [`Self::look_at_all`] is called.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        lock(&self.next).take_if(|next| *next <= now).is_some()
    }

    fn plan(&self, held: &[Moved]) {
        *lock(&self.next) = held.iter().map(|moved| moved.next).min();
    }
}

/// The room that a file takes up.
fn taken(file: &File) -> u64 {
    let metadata = file.metadata();
    metadata.map_or(0, |metadata| metadata.blocks().saturating_mul(512))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Moved {
    /// How long to wait for the next look; `None` if there need be none.
    fn pause(&self, workspace: Option<u64>) -> Option<Duration> {
        let age = self.since.elapsed();
        if age < FIRST {
            return Some(FIRST.saturating_sub(age));
        }
        let left = LONGEST.checked_sub(age)?;
        match Lease::take(&self.file, Kind::Read) {
            Ok(_) => None,
            // Ever less often: most close it soon.
            Err(Refused::Busy) => Some(age.min(left)),
            Err(Refused::Unavailable) => {
                let device = self.file.metadata().ok().map(|metadata| metadata.dev());
                (device == workspace).then_some(left)
            }
        }
    }

    fn look(&mut self, thoroughly: bool, mut changed: impl FnMut(&Self)) {
        // The first store into a file stamps it; later ones through a memory
        // map may not, for which there is the thorough look.
        let stamp = content::stamp(&self.file).ok();
        if !thoroughly && stamp.is_some() && stamp == self.stamp {
            return;
        }
        match content::hash(&self.file) {
            Ok(Some((hash, stamp))) => {
                self.stamp = Some(stamp);
                if hash != self.hash {
                    self.hash = hash;
                    changed(self);
                }
            }
            // Still being written: whoever looks next sees more of it, unless
            // nobody will.
            Ok(None) if thoroughly => changed(self),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(path = %self.path, "{}: {error}", self.path);
            }
        }
    }
}
