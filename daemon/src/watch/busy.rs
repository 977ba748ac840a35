//! LIM-6 for directories and links: an event about a name through which many
//! files are reached costs a look at each of these files. If such a name
//! changes all the time, the files are looked at once in a while instead of at
//! each event. Until then they are read when a query needs them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use touchmark_proto::RelPath;

/// The length of a span. Events and looks are counted per span.
const SPAN: Duration = Duration::from_millis(250);

/// The number of files looked at in a span, after which events about names that
/// were already looked at in that span are deferred. It corresponds to some
/// tens of milliseconds, and is more than a checkout needs.
const LOOKS: usize = 2_048;

/// Names through which several files are reached and that change all the time.
pub(super) struct Busy {
    ends: Instant,
    /// The deferred names are not looked at again before this time. `ends` is
    /// a time of events: they may be digested long after it.
    rests: Instant,
    looks: usize,
    /// Names whose files were looked at in this span.
    seen: BTreeSet<RelPath>,
    /// Names that were deferred in the previous span. Here they are deferred
    /// from their first event on.
    before: BTreeSet<RelPath>,
    /// Names that are deferred in this span.
    now: BTreeSet<RelPath>,
    /// Names whose files have to be looked at.
    owed: BTreeSet<RelPath>,
}

impl Busy {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            ends: now + SPAN,
            rests: now,
            looks: 0,
            seen: BTreeSet::new(),
            before: BTreeSet::new(),
            now: BTreeSet::new(),
            owed: BTreeSet::new(),
        }
    }

    /// Returns whether an event about a name through which `files` files are
    /// reached is deferred. `at` is when the event was taken from the system.
    pub(super) fn puts_off(&mut self, name: &RelPath, files: usize, at: Instant) -> bool {
        if self.ends <= at {
            // If no such event came for a whole span after the last one, the
            // storm is over.
            let lately = at < self.ends + SPAN;
            let waited = std::mem::take(&mut self.now);
            self.before = if lately { waited } else { BTreeSet::new() };
            self.seen.clear();
            self.looks = 0;
            self.ends = at + SPAN;
        }
        let waits = self.before.contains(name)
            || self.owed.contains(name)
            || self.looks > LOOKS && self.seen.contains(name);
        if waits {
            self.now.insert(name.clone());
            self.owed.insert(name.clone());
        } else {
            self.looks += files;
            self.seen.insert(name.clone());
        }
        waits
    }

    /// Returns when the deferred names are looked at, or `None` if there are
    /// none.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.owed.is_empty()).then_some(self.ends.max(self.rests))
    }

    /// Returns the deferred names, without those below another of them.
    pub(super) fn owed(&self) -> Vec<RelPath> {
        let mut owed: Vec<RelPath> = Vec::new();
        for name in &self.owed {
            if !owed.iter().any(|above| name.below(above).is_some()) {
                owed.push(name.clone());
            }
        }
        owed
    }

    /// Removes and returns the deferred names, without those below another of
    /// them. They are looked at `now`.
    pub(super) fn take_owed(&mut self, now: Instant) -> Vec<RelPath> {
        let owed = self.owed();
        self.rests = now + SPAN;
        self.owed.clear();
        owed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(path: &str) -> RelPath {
        RelPath::new(path.as_bytes()).unwrap()
    }

    #[test]
    fn names_in_a_storm_are_looked_at_once_a_span() {
        let first = Instant::now();
        let mut busy = Busy::new(first);
        let (tree, inner, other) = (name("tree"), name("tree/inner"), name("other"));
        let at_once = (0..100).filter(|_| !busy.puts_off(&tree, 450, first));
        assert_eq!(at_once.count(), LOOKS / 450 + 1);
        assert_eq!(busy.due(), Some(first + SPAN));
        // A name that was not looked at in this span is looked at, once.
        assert!(!busy.puts_off(&other, 450, first) && !busy.puts_off(&inner, 2, first));
        assert!(busy.puts_off(&inner, 2, first));
        let late = first + SPAN / 2;
        assert_eq!(busy.take_owed(late), std::slice::from_ref(&tree));
        assert_eq!(busy.due(), None);
        // While the storm continues, all of its events are deferred.
        let second = first + SPAN;
        assert!(busy.puts_off(&tree, 450, second));
        assert!(!busy.puts_off(&other, 450, second));
        assert_eq!(busy.due(), Some(second + SPAN));
        assert_eq!(
            busy.take_owed(second + SPAN * 9),
            std::slice::from_ref(&tree)
        );
        // Events of that time that are digested only now cause no look at once.
        assert!(busy.puts_off(&tree, 450, second));
        assert_eq!(busy.due(), Some(second + SPAN * 10));
        busy.take_owed(second + SPAN);
        // It ends when nothing has happened for a while.
        assert!(!busy.puts_off(&tree, 450, second + SPAN * 3));
        assert_eq!(busy.due(), None);
    }
}
