//! Which tools an agent's hooks deny.

use serde::Deserialize;

/// For what hooks deny a tool that is about to write (HOOK-4), the strictest
/// last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// Nothing but another agent's edit of the same file.
    Off,
    /// What would destroy what somebody else wrote and the session has not
    /// seen.
    #[default]
    Destructive,
    /// Any file that the session has not read as it is now.
    Strict,
}

/// What hooks do about a tool that is about to write to a file in which an
/// editor holds unsaved changes (HOOK-6), the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsaved {
    /// Nothing.
    Off,
    /// Deny once what changes the same lines.
    Deny,
    /// Have the agent ask its user once; where it cannot, the same as `Deny`.
    #[default]
    Ask,
}
