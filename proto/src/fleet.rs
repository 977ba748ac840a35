//! The request by which a daemon makes another daemon of the same user end, to
//! get its watches and its memory (FLEET-2).

/// Ends the daemon if nothing needs it (FLEET-3). A daemon sends this to
/// another one that was not used for longer, when both use more than the user
/// allows. It does not count as a use.
#[apply(request!)]
pub struct FleetYield {
    /// The time for which the daemon must not have been used, in milliseconds.
    pub idle_ms: u64,
}

/// Whether the daemon ends.
#[apply(answer!)]
pub struct FleetYielded {
    /// Whether the daemon ends. The next client starts it again.
    pub ends: bool,
    /// Why the daemon does not end, as a sentence for people; `None` if it
    /// ends.
    pub because: Option<String>,
}
