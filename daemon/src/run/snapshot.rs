//! When a snapshot of the engine's state is stored, from which the next start
//! continues.

use std::time::{Duration, Instant};

/// The number of facts since the last snapshot, after which a new one is made.
const FACTS: u64 = 50_000;

/// The next snapshot requires at least one fact for this many bytes of the last
/// one, so that a large state is not written again for a few facts. The next
/// start folds the facts since the snapshot, some hundred thousand a second.
const BYTES_PER_FACT: u64 = 256;

/// A snapshot is made once no fact was recorded for this long, since no request
/// is answered while it is encoded.
const REST: Duration = Duration::from_millis(500);

/// With this many times the required number of facts, a snapshot is made
/// without waiting for a pause.
const OVERDUE: u64 = 4;

/// When the next snapshot is made.
pub(super) struct Next {
    /// The size of the last snapshot.
    bytes: u64,
    /// The number of facts recorded since then.
    facts: u64,
    /// When the snapshot is made if no fact is recorded until then; `None` if
    /// too few facts were recorded.
    at: Option<Instant>,
}

impl Next {
    /// Creates the record after a snapshot of `bytes` bytes, with `facts` facts
    /// since then.
    pub(super) fn after(bytes: u64, facts: u64) -> Self {
        Self {
            bytes,
            facts,
            at: None,
        }
    }

    /// Counts the facts of a turn.
    pub(super) fn count(&mut self, facts: u64) {
        self.facts += facts;
        let due = FACTS.max(self.bytes / BYTES_PER_FACT);
        if facts > 0 && self.facts >= due {
            let overdue = self.facts >= due * OVERDUE;
            let rest = if overdue { Duration::ZERO } else { REST };
            self.at = Some(Instant::now() + rest);
        }
    }

    /// Returns when to call [`take_due`](Self::take_due).
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Returns whether a snapshot has to be made now. Returns true only once
    /// for each.
    pub(super) fn take_due(&mut self) -> bool {
        self.at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// Returns whether facts were recorded since the last snapshot.
    pub(super) fn has_news(&self) -> bool {
        self.facts > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_waits_for_quiet_but_not_for_ever() {
        let mut next = Next::after(BYTES_PER_FACT * FACTS * 2, 0);
        next.count(FACTS * 2 - 1);
        assert_eq!((next.due(), next.take_due()), (None, false), "too few");
        next.count(1);
        assert!(next.due().is_some_and(|at| at > Instant::now()));
        next.count(FACTS * 2 * (OVERDUE - 1));
        assert!(next.take_due(), "overdue");
        assert!(!next.take_due(), "said once");
        assert!(next.has_news());
    }
}
