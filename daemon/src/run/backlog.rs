//! A bound on what the watcher has seen and the loop has not taken yet.
//!
//! The watcher's thread never waits for the loop: the loop waits for it when
//! it asks for a watch. So where somebody makes events faster than they can
//! be looked at, for long, the rest is given up as an overflow of the kernel's
//! own queue would be (LOSS-1), and memory stays bounded (LIM-1).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::watch::RawEvent;

/// Far more than a rewrite of 100,000 files makes, and some 150 MB at most.
const LONGEST: usize = 1_000_000;

/// Events that wait for the loop.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: AtomicUsize,
    /// A loss has been said and not been taken yet.
    lost: AtomicBool,
}

impl Backlog {
    /// What to hand over for an event: itself, the news that it and later
    /// ones were lost, or nothing where that has been said.
    pub(super) fn admit(&self, raw: RawEvent) -> Option<RawEvent> {
        if self.lost.load(Ordering::Acquire) {
            return None;
        }
        if self.waiting.fetch_add(1, Ordering::AcqRel) < LONGEST {
            return Some(raw);
        }
        if self.lost.swap(true, Ordering::AcqRel) {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(raw.into_loss())
    }

    /// The loop took one. The loss is the last that waits: before it is looked
    /// at, later events count again, since those of the backend that is made
    /// anew then must not be missed.
    pub(super) fn taken(&self) {
        let left = self.waiting.fetch_sub(1, Ordering::AcqRel);
        if left <= 1 {
            self.lost.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_too_much_is_said_to_be_lost_once() {
        let backlog = Backlog::default();
        backlog.waiting.store(LONGEST - 1, Ordering::Release);
        let raw = RawEvent::loss(0);
        assert!(backlog.admit(raw.clone()).is_some());
        assert_eq!(backlog.admit(raw.clone()), Some(raw.clone().into_loss()));
        assert_eq!(backlog.admit(raw.clone()), None);
        for _ in 0..=LONGEST {
            backlog.taken();
        }
        assert!(backlog.admit(raw).is_some());
    }
}
