//! What the engine counts.

/// Counters, since the engine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of hints received.
    pub hints: u64,
    /// The number of versions recorded.
    pub versions: u64,
    /// The number of fences ordered.
    pub fences: u64,
    /// The number of queue overflows.
    pub overflows: u64,
    /// The number of comparisons with the disk that were begun because coverage
    /// of some or all tracked paths was lost.
    pub rescans: u64,
    /// The number of requests answered.
    pub requests: u64,
    /// Hook events that were not understood and named no known session.
    pub unclear_hooks: u64,
    /// The number of paths that are tracked now.
    pub tracked: u64,
    /// The number of sessions that are open now.
    pub sessions: u64,
    /// The number of edits that are open now.
    pub open_edits: u64,
    /// The number of command windows that are open now.
    pub open_commands: u64,
}
