//! The limit for events that the watcher has passed on and the loop has not
//! processed yet.
//!
//! The watcher's thread never waits for the loop, since the loop waits for it
//! when it adds a watch. So events that arrive faster than the loop can process
//! them are dropped, in two steps:
//!
//! - While many events are queued, at most a few of each name are (LIM-6). One
//!   event that says so replaces the others, and the name is looked at again.
//!   So a file that is renamed to and fro a million times delays no fence.
//! - Where too many events are queued in all, the later ones are lost, as when
//!   the kernel's own queue overflows (LOSS-1), and memory stays bounded
//!   (LIM-1).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::RawEvent;

/// The most queued events: far more than a rewrite of 100,000 files makes, and
/// at most some 150 MB.
const LONGEST: usize = 1_000_000;

/// While fewer events are queued, they are not counted per name.
const UNCOUNTED: usize = 512;

/// The most queued events of one name, while names are counted. More than a
/// save makes, and so few that a name in a storm delays a fence by about a
/// millisecond.
const OF_A_NAME: u32 = 64;

/// The number of events that wait for the loop.
#[derive(Debug, Default)]
pub struct Backlog {
    waiting: AtomicUsize,
    /// A loss was passed on, and the loop has not processed it yet.
    lost: AtomicBool,
    /// The number of counted events of each name that are queued.
    counted: Mutex<HashMap<PathBuf, u32>>,
}

/// An event that waits for the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The event.
    pub raw: RawEvent,
    /// It is counted for its name.
    counted: bool,
}

impl Backlog {
    /// Returns what to queue for an event: the event, one that reports the loss
    /// of it and later ones (of all names or of its own), or nothing if that
    /// was reported already.
    pub fn admit(&self, raw: RawEvent) -> Option<Waiting> {
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

    /// Counts an event for its name. The last one that fits into the limit is
    /// replaced by one that says that more may follow; later ones are left out.
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

    /// Removes an event from the count, when the loop takes it to process it
    /// next.
    ///
    /// A reported loss is the last event of the queue, and a crowd the last
    /// event of its name. From here on, later events are queued again, since
    /// the loop's next look may come before them. Events that were left out
    /// until now happened before that look, so it finds their result.
    pub fn take(&self, event: Waiting) -> RawEvent {
        let Waiting { raw, counted } = event;
        if let Some(name) = raw.name().filter(|_| counted) {
            self.discount(name, raw.is_crowd());
        }
        let left = self.waiting.fetch_sub(1, Ordering::AcqRel);
        if left <= 1 {
            // Events that were replaced by a loss are never taken, and would
            // stay counted. The queue is empty, so all counts are 0.
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
            // If a crowd is queued as well, later ones are still left out.
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
        // Events of other names are not left out.
        let other = backlog.admit(written("other")).unwrap();
        assert_eq!(other.raw, written("other"));
        for event in waiting {
            backlog.take(event);
            assert_eq!(backlog.admit(written("storm")), None);
        }
        // From here on its events are queued again.
        assert!(backlog.take(crowd).is_crowd());
        let next = backlog.admit(written("storm")).unwrap();
        assert_eq!(next.raw, written("storm"));
        assert_eq!(backlog.counted()[Path::new("storm")], 1);
    }
}
