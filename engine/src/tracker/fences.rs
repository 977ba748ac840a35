//! Fences. Once a fence is reached, everything written before it was ordered is
//! known (SYNC-1).

/// The fences that were ordered and reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fences {
    /// The number of the last fence ordered.
    started: u64,
    /// The number of the last fence reached.
    done: u64,
    /// Whether one more fence is wanted once the current one is reached.
    wanted: bool,
}

impl Fences {
    /// Returns the number of the fence for a request that arrives now: one that
    /// begins after it. The second value says whether to order it immediately.
    pub(crate) fn want(&mut self) -> (u64, bool) {
        if self.started == self.done {
            self.started += 1;
            return (self.started, true);
        }
        self.wanted = true;
        (self.started + 1, false)
    }

    /// Returns whether a fence was reached.
    pub(crate) fn is_done(&self, fence: u64) -> bool {
        fence <= self.done
    }

    /// Records that a fence was reached. Returns the number of the last fence
    /// reached before it, or `None` if this one was reached already.
    pub(crate) fn reach(&mut self, fence: u64) -> Option<u64> {
        (fence > self.done).then(|| std::mem::replace(&mut self.done, fence))
    }

    /// Returns the next fence to order, or `None` if none is wanted.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.started += u64::from(self.wanted);
        std::mem::take(&mut self.wanted).then_some(self.started)
    }
}
