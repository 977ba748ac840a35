//! When the engine's state is stored, so that the next start goes on from it.

use std::time::{Duration, Instant};

/// Facts since the last snapshot, before a new one is made.
const FACTS: u64 = 50_000;

/// The same for each byte of the last one: a large state is not written anew
/// for a few facts. The next start folds the facts since, at some hundred
/// thousand a second.
const BYTES_PER_FACT: u64 = 256;

/// It is made once no fact has come for so long: while it is put together,
/// nobody is answered.
const REST: Duration = Duration::from_millis(500);

/// Or when so many times as many facts have come.
const OVERDUE: u64 = 4;

/// When the next one is made.
pub(super) struct Next {
    /// Of the last one.
    bytes: u64,
    /// Since then.
    facts: u64,
    /// If nothing happens until then.
    at: Option<Instant>,
}

impl Next {
    /// After one of so many bytes, with so many facts since.
    pub(super) fn after(bytes: u64, facts: u64) -> Self {
        Self {
            bytes,
            facts,
            at: None,
        }
    }

    /// A turn has recorded facts.
    pub(super) fn count(&mut self, facts: u64) {
        self.facts += facts;
        let due = FACTS.max(self.bytes / BYTES_PER_FACT);
        if facts > 0 && self.facts >= due {
            let overdue = self.facts >= due * OVERDUE;
            let rest = if overdue { Duration::ZERO } else { REST };
            self.at = Some(Instant::now() + rest);
        }
    }

    /// When to look whether it is time.
    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it is time; says so once.
    pub(super) fn take_due(&mut self) -> bool {
        self.at.take_if(|at| *at <= Instant::now()).is_some()
    }

    /// Whether there is something that the last one does not hold.
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
