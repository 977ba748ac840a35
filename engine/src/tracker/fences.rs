//! Fences: behind one that was reached, everything is known that was written
//! before it was ordered (SYNC-1).

/// Fences ordered and reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// The last one ordered.
    started: u64,
    /// The last one reached.
    done: u64,
    /// One more is wanted once the running one is reached.
    wanted: bool,
}

impl Fences {
    /// The fence for who arrives now: one that begins after that. The second
    /// says whether it is to be ordered at once.
    pub(crate) fn want(&mut self) -> (u64, bool) {
        if self.started == self.done {
            self.started += 1;
            return (self.started, true);
        }
        self.wanted = true;
        (self.started + 1, false)
    }

    /// Whether that one was reached.
    pub(crate) fn is_done(&self, fence: u64) -> bool {
        fence <= self.done
    }

    /// One was reached; the one that was reached before it, if that is news.
    pub(crate) fn reach(&mut self, fence: u64) -> Option<u64> {
        (fence > self.done).then(|| std::mem::replace(&mut self.done, fence))
    }

    /// The next one, if it is wanted.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.started += u64::from(self.wanted);
        std::mem::take(&mut self.wanted).then_some(self.started)
    }
}
