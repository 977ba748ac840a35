//! Files that have lost their name to a guarded write. They are held open for a
//! moment and looked at again, since another process may have opened the old
//! file just before it was moved and written to it just after (GUARD-1).
//!
//! Such a process still has the file open. So a file is released as soon as no
//! process has it open for writing any more, which a lease shows. It must not
//! be held longer, since an open file prevents its file system from being
//! unmounted.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use touchmark_proto::{Hash, RelPath};

use super::content::{self, Stamp};
use crate::system::disk;
use crate::system::lease::Lease;
use crate::system::leased::{Kind, Refused};

/// The minimum time that a file is held. An open that found the file before it
/// was moved completes within this time, and is visible from then on.
const FIRST: Duration = Duration::from_millis(250);

/// The least time between two looks: files that lose their names one after the
/// other are looked at together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The maximum time that a file is held. It applies while a process has the
/// file open for writing, and where no lease can show that. In the second case
/// a file on another file system than the workspace's is held for [`FIRST`]
/// only, since that file system may have to be unmounted.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The most files held; the oldest is released for a new one.
const MOST: usize = 256;

/// The most disk space, in bytes, that held files may use, and at most one part
/// in [`OF_ROOM`] of the space left on their file system. The oldest are
/// released first, after a last look.
const MOST_BYTES: u64 = 256 << 20;
const OF_ROOM: u64 = 4;

/// A file without a name.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) file: File,
    /// The path in the request; `real` is the file's own name.
    pub(super) path: RelPath,
    pub(super) real: RelPath,
    /// The hash of its content at the last look.
    hash: Hash,
    stamp: Option<Stamp>,
    /// The disk space that it used when it was held, in bytes.
    taken: u64,
    since: Instant,
    /// When to look at it next.
    next: Instant,
}

/// All files that are held.
#[derive(Debug, Default)]
pub(super) struct Net {
    held: Mutex<Vec<Moved>>,
    /// When the next look is due. It has a separate lock, so that the loop need
    /// not wait for a look in progress. `None` if no file is held, or a look is
    /// in progress.
    next: Mutex<Option<Instant>>,
    /// The device of the workspace's file system.
    device: Option<u64>,
}

impl Net {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            device: root.metadata().ok().map(|metadata| metadata.dev()),
            ..Self::default()
        }
    }

    /// Releases all files, since disk space is short. Returns whether there
    /// were any.
    pub(super) fn give_up(&self, mut changed: impl FnMut(&Moved)) -> bool {
        let mut held = lock(&self.held);
        let any = !held.is_empty();
        for mut moved in held.drain(..) {
            moved.look(true, &mut changed);
        }
        *lock(&self.next) = None;
        any
    }

    /// Holds a file whose content has the hash `hash`. Files that are released
    /// for it are looked at before; `changed` is called for those that were
    /// written to.
    pub(super) fn hold(
        &self,
        file: File,
        (path, real): (&RelPath, &RelPath),
        hash: Hash,
        mut changed: impl FnMut(&Moved),
    ) {
        let mut held = lock(&self.held);
        let room = disk::room_at(&file).map_or(MOST_BYTES, |room| room / OF_ROOM);
        let taken = taken(&file);
        let mut left = MOST_BYTES.min(room).saturating_sub(taken);
        let kept = held.iter().rev().take(MOST - 1).take_while(|moved| {
            let fits = left.checked_sub(moved.taken);
            left = fits.unwrap_or_default();
            fits.is_some()
        });
        let over = held.len() - kept.count();
        for mut moved in held.drain(..over) {
            moved.look(true, &mut changed);
        }
        let since = Instant::now();
        let due = since + FIRST;
        held.push(Moved {
            file,
            path: path.clone(),
            real: real.clone(),
            hash,
            stamp: None,
            taken,
            since,
            next: due,
        });
        let mut next = lock(&self.next);
        *next = Some(next.map_or(due, |next| next.min(due)));
    }

    /// Looks again at the files of one path, and calls `changed` for those with
    /// another content now. Does nothing while another thread looks at all
    /// files.
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

    /// Looks thoroughly at all files, and releases those that no process writes
    /// to.
    pub(super) fn look_at_all(&self, changed: impl FnMut(&Moved)) {
        self.look_at_those(|_| true, changed);
    }

    /// Does the same for those files whose time has come.
    pub(super) fn look_at_due(&self, changed: impl FnMut(&Moved)) {
        let now = Instant::now();
        self.look_at_those(|moved| moved.next <= now, changed);
    }

    fn look_at_those(&self, which: impl Fn(&Moved) -> bool, mut changed: impl FnMut(&Moved)) {
        let mut held = lock(&self.held);
        held.retain_mut(|moved| {
            if !which(moved) {
                return true;
            }
            // Checked before the look, which then finds everything that was
            // written by a process that has closed the file.
            let pause = moved.pause(self.device);
            moved.look(true, &mut changed);
            let Some(pause) = pause else { return false };
            moved.next = Instant::now() + pause;
            true
        });
        let next = held.iter().map(|moved| moved.next).min();
        *lock(&self.next) = next.map(|next| next.max(Instant::now() + TOGETHER));
    }

    /// Returns the disk space that all files use, in bytes.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> u64 {
        lock(&self.held)
            .iter()
            .map(|moved| taken(&moved.file))
            .sum()
    }

    /// Returns when the next look is due.
    pub(super) fn next(&self) -> Option<Instant> {
        *lock(&self.next)
    }

    /// Returns whether a look is due now. If so, the caller has to call
    /// [`Self::look_at_due`].
    pub(super) fn is_due(&self, now: Instant) -> bool {
        lock(&self.next).take_if(|next| *next <= now).is_some()
    }
}

/// Returns the disk space that a file uses, in bytes.
fn taken(file: &File) -> u64 {
    let metadata = file.metadata();
    metadata.map_or(0, |metadata| metadata.blocks().saturating_mul(512))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Moved {
    /// Returns how long to wait until the next look; `None` if none is needed.
    fn pause(&self, workspace: Option<u64>) -> Option<Duration> {
        let age = self.since.elapsed();
        if age < FIRST {
            return Some(FIRST.saturating_sub(age));
        }
        let left = LONGEST.checked_sub(age)?;
        match Lease::take(&self.file, Kind::Read) {
            Ok(_) => None,
            // The waits increase, since most processes close the file soon.
            Err(Refused::Busy) => Some(age.min(left)),
            Err(Refused::Unavailable) => {
                let device = self.file.metadata().ok().map(|metadata| metadata.dev());
                (device == workspace).then_some(left)
            }
        }
    }

    fn look(&mut self, thoroughly: bool, mut changed: impl FnMut(&Self)) {
        // The first store into a file changes its times. Later ones through a
        // memory map may not; the thorough look finds those.
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
            // The file is still being written. A thorough look may be the last
            // one, so its bytes are stored; after any other look a later one
            // finds more.
            Ok(None) if thoroughly => changed(self),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(path = %self.path, "{}: {error}", self.path);
            }
        }
    }
}
