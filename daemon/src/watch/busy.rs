//! LIM-6 for directories and links: an event about a name that stands for many
//! files costs a look at each of them. Where such a name changes all the time,
//! one look now and then stands for one at each event; until then what it
//! stands for is read when it is asked about.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use touchmark_proto::RelPath;

/// Events of so long are counted together.
const SPAN: Duration = Duration::from_millis(250);

/// Looks within a span after which names that were looked at in it have to
/// wait: some tens of milliseconds, and more than a checkout makes.
const LOOKS: usize = 2_048;

/// Names that stand for several files and change all the time.
pub(super) struct Busy {
    ends: Instant,
    looks: usize,
    /// Looked at in this span.
    seen: BTreeSet<RelPath>,
    /// Had to wait in the span before, and do so from their first event on.
    before: BTreeSet<RelPath>,
    /// Have to wait in this span.
    now: BTreeSet<RelPath>,
    /// Are to be looked at.
    owed: BTreeSet<RelPath>,
}

impl Busy {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            ends: now + SPAN,
            looks: 0,
            seen: BTreeSet::new(),
            before: BTreeSet::new(),
            now: BTreeSet::new(),
            owed: BTreeSet::new(),
        }
    }

    /// Whether an event about a name that stands for so many files has to
    /// wait.
    pub(super) fn puts_off(&mut self, name: &RelPath, files: usize, now: Instant) -> bool {
        if self.ends <= now {
            // Nothing was put off for as long again: it is over.
            let lately = now < self.ends + SPAN;
            let waited = std::mem::take(&mut self.now);
            self.before = if lately { waited } else { BTreeSet::new() };
            self.seen.clear();
            self.looks = 0;
            self.ends = now + SPAN;
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

    /// When the names that have to wait are looked at, if there are any.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.owed.is_empty()).then_some(self.ends)
    }

    /// The names that are to be looked at; none that lies below another.
    pub(super) fn owed(&self) -> Vec<RelPath> {
        let mut owed: Vec<RelPath> = Vec::new();
        for name in &self.owed {
            if !owed.iter().any(|above| name.below(above).is_some()) {
                owed.push(name.clone());
            }
        }
        owed
    }

    /// The same; they are looked at now.
    pub(super) fn take_owed(&mut self) -> Vec<RelPath> {
        let owed = self.owed();
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
        // What has not been looked at in this span is looked at, once.
        assert!(!busy.puts_off(&other, 450, first) && !busy.puts_off(&inner, 2, first));
        assert!(busy.puts_off(&inner, 2, first));
        assert_eq!(busy.take_owed(), std::slice::from_ref(&tree));
        assert_eq!(busy.due(), None);
        // While it goes on, all of its events wait.
        let second = first + SPAN;
        assert!(busy.puts_off(&tree, 450, second));
        assert!(!busy.puts_off(&other, 450, second));
        assert_eq!(busy.take_owed(), std::slice::from_ref(&tree));
        // Until nothing has happened for a while.
        assert!(!busy.puts_off(&tree, 450, second + SPAN * 3));
        assert!(busy.take_owed().is_empty());
    }
}
