//! The last net: files that have lost their name to a guarded write are held
//! open for a while and looked at again. Somebody may have found the old file
//! just before it was moved and written to it just after (GUARD-1).

use std::fs::File;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use touchmark_proto::{Hash, RelPath};

use super::content::{self, Stamp};

/// How long a file is held.
const HOLD: Duration = Duration::from_secs(10 * 60);

/// Files held at most; the oldest is given up for a new one.
const MOST: usize = 256;

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
    until: Instant,
}

/// All that are held.
#[derive(Debug, Default)]
pub(super) struct Net(Mutex<Vec<Moved>>);

impl Net {
    fn held(&self) -> MutexGuard<'_, Vec<Moved>> {
        self.0.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// Holds a file that held `hash`. What falls out of the net for it has
    /// been looked at by `changed`.
    pub(super) fn hold(
        &self,
        file: File,
        (path, real): (&RelPath, &RelPath),
        hash: Hash,
        changed: impl FnMut(&Moved),
    ) {
        let mut held = self.held();
        let over = (held.len() + 1).saturating_sub(MOST);
        let mut given_up: Vec<Moved> = held.drain(..over).collect();
        held.push(Moved {
            file,
            path: path.clone(),
            real: real.clone(),
            hash,
            stamp: None,
            until: Instant::now() + HOLD,
        });
        drop(held);
        look(&mut given_up, true, changed);
    }

    /// Looks again at the files of one path, or thoroughly at all; `changed`
    /// is told of those that hold something else now.
    pub(super) fn look_again(&self, only: Option<&RelPath>, mut changed: impl FnMut(&Moved)) {
        // Taken out, so that nobody waits for the lock while files are read.
        let mut looked_at = std::mem::take(&mut *self.held());
        let now = Instant::now();
        for moved in &mut looked_at {
            let asked = only.is_none_or(|path| moved.path == *path || moved.real == *path);
            let last = only.is_none() || moved.until <= now;
            if asked || last {
                look(std::slice::from_mut(moved), last, &mut changed);
            }
        }
        looked_at.retain(|moved| moved.until > now);
        let mut held = self.held();
        looked_at.append(&mut held);
        *held = looked_at;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// When the next is given up.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.held().iter().map(|moved| moved.until).min()
    }
}

fn look(held: &mut [Moved], thoroughly: bool, mut changed: impl FnMut(&Moved)) {
    for moved in held {
        // The first store into a file stamps it; later ones through a memory
        // map may not, for which there is the thorough look.
        let stamp = content::stamp(&moved.file).ok();
        if !thoroughly && stamp.is_some() && stamp == moved.stamp {
            continue;
        }
        match content::hash(&moved.file) {
            Ok(Some((hash, stamp))) => {
                moved.stamp = Some(stamp);
                if hash != moved.hash {
                    moved.hash = hash;
                    changed(moved);
                }
            }
            // Still being written: whoever looks next sees more of it, unless
            // nobody will.
            Ok(None) if thoroughly => changed(moved),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(path = %moved.path, "{}: {error}", moved.path);
            }
        }
    }
}
