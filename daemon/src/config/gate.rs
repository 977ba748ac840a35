//! The rules by which agents' hooks deny tools.

use serde::{Deserialize, Serialize};

/// When hooks deny a tool that is about to write (HOOK-4), the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// Deny only during another agent's edit of the same file.
    Off,
    /// Deny what would destroy another author's changes that the session has
    /// not seen.
    #[default]
    Destructive,
    /// Deny a write to any file whose current content the session has not read.
    Strict,
}

/// What hooks do about a tool that is about to write to a file with unsaved
/// changes in an editor (HOOK-6), the strictest last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unsaved {
    /// Do nothing.
    Off,
    /// Deny once what changes the same lines.
    Deny,
    /// Make the agent ask its user once; where it cannot, do the same as
    /// `Deny`.
    #[default]
    Ask,
}
