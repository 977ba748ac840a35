//! A bound on what the watcher has seen and the loop has not taken yet.
//!
//! The watcher's thread never waits for the loop: the loop waits for it when
//! it asks for a watch. So what comes faster than the loop can look at it is
//! given up, in two steps:
//!
//! - While many events wait, only some of each name do (LIM-6): one event that
//!   says so stands for the rest, and the name is looked at anew. So a file
//!   that is renamed to and fro a million times delays no fence.
//! - Where too many wait of all names, the rest is lost, as with an overflow
//!   of the kernel's own queue (LOSS-1), and memory stays bounded (LIM-1).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::watch::RawEvent;

/// Far more than a rewrite of 100,000 files makes, and some 150 MB at most.
const LONGEST: usize = 1_000_000;

/// While fewer events wait, names are not counted.
const UNCOUNTED: usize = 512;

/// Events of one name that wait while names are counted. More than a save
/// makes, and so few that a name in a storm costs a fence about a millisecond.
const OF_A_NAME: u32 = 64;

/// Events that wait for the loop.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: AtomicUsize,
    /// A loss has been said and not been taken yet.
    lost: AtomicBool,
    /// How many counted events of each name wait.
    counted: Mutex<HashMap<PathBuf, u32>>,
}

/// An event that waits for the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What was seen.
    pub raw: RawEvent,
    /// It is one of those that are counted for its name.
    counted: bool,
}

impl Backlog {
    /// What to hand over for an event: itself, the news that it and later
    /// ones were lost, of all names or of its own, or nothing where that has
    /// been said.
    pub(super) fn admit(&self, raw: RawEvent) -> Option<Waiting> {
        if self.lost.load(Ordering::Acquire) {
            return None;
        }
        let many = self.waiting.load(Ordering::Acquire) >= UNCOUNTED;
        let name = raw.name().filter(|_| many).map(Path::to_path_buf);
        let counted = name.is_some();
        let raw = match name {
            Some(name) => self.count(name, raw)?,
            None => raw,
        };
        if self.waiting.fetch_add(1, Ordering::AcqRel) < LONGEST {
            return Some(Waiting { raw, counted });
        }
        if self.lost.swap(true, Ordering::AcqRel) {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Waiting {
            raw: raw.into_loss(),
            counted: false,
        })
    }

    /// Counts an event for its name: the last one that may wait says that more
    /// may follow, later ones are left out.
    fn count(&self, name: PathBuf, raw: RawEvent) -> Option<RawEvent> {
        let mut counted = self.counted();
        let waiting = counted.entry(name).or_default();
        if *waiting == OF_A_NAME {
            return None;
        }
        *waiting += 1;
        let last = *waiting == OF_A_NAME;
        Some(if last { raw.into_crowd() } else { raw })
    }

    /// The loop takes one and looks at it next.
    ///
    /// The loss is the last that waits, and the crowd the last of its name.
    /// Events that come from here on count again: what the loop looks at next
    /// may be from before them. Those that were left out until here have
    /// happened by then.
    pub(super) fn take(&self, event: Waiting) -> RawEvent {
        let Waiting { raw, counted } = event;
        if let Some(name) = raw.name().filter(|_| counted) {
            self.discount(name, raw.is_crowd());
        }
        let left = self.waiting.fetch_sub(1, Ordering::AcqRel);
        if left <= 1 {
            // Events that a loss replaced are never taken, and would stay
            // counted. Nothing is waiting, so all counts are over.
            *self.counted() = HashMap::new();
            self.lost.store(false, Ordering::Release);
        }
        raw
    }

    fn discount(&self, name: &Path, crowd: bool) {
        let mut counted = self.counted();
        let Some(waiting) = counted.get_mut(name) else {
            return;
        };
        if crowd || *waiting == 1 {
            counted.remove(name);
        } else if *waiting < OF_A_NAME {
            // With a crowd behind it, later ones are left out as before.
            *waiting -= 1;
        }
    }

    fn counted(&self) -> MutexGuard<'_, HashMap<PathBuf, u32>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn written(path: &str) -> RawEvent {
        RawEvent::written(0, Path::new(path))
    }

    #[test]
    fn what_is_too_much_is_said_to_be_lost_once() {
        let backlog = Backlog::default();
        backlog.waiting.store(LONGEST - 1, Ordering::Release);
        assert_eq!(backlog.admit(written("a")).unwrap().raw, written("a"));
        let loss = backlog.admit(written("a")).unwrap();
        assert_eq!(loss.raw, written("a").into_loss());
        assert_eq!(backlog.admit(written("b")), None);
        for _ in 0..=LONGEST {
            backlog.take(loss.clone());
        }
        assert!(backlog.admit(written("a")).is_some());
        assert!(backlog.counted().is_empty());
    }

    #[test]
    fn a_name_in_a_storm_takes_up_bounded_room() {
        let backlog = Backlog::default();
        for number in 0..UNCOUNTED {
            assert!(backlog.admit(written(&number.to_string())).is_some());
        }
        let storm = (0..100_000).filter_map(|_| backlog.admit(written("storm")));
        let mut waiting: Vec<Waiting> = storm.collect();
        assert_eq!(waiting.len(), OF_A_NAME as usize);
        let crowd = waiting.pop().unwrap();
        assert!(crowd.raw.is_crowd());
        // Nobody else's events are left out.
        let other = backlog.admit(written("other")).unwrap();
        assert_eq!(other.raw, written("other"));
        for event in waiting {
            backlog.take(event);
            assert_eq!(backlog.admit(written("storm")), None);
        }
        // From here on its events are news again.
        assert!(backlog.take(crowd).is_crowd());
        let next = backlog.admit(written("storm")).unwrap();
        assert_eq!(next.raw, written("storm"));
        assert_eq!(backlog.counted()[Path::new("storm")], 1);
    }
}
