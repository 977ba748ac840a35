//! Why a session's write was refused, or let through.

/// Why an edit or a write was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The session's copy was out of date.
    Stale,
    /// The session had not read the file.
    NotRead,
    /// A guarded write found bytes that the session had not seen.
    Conflict,
}

/// Why a hook let a tool write a file with changes that its session had not
/// seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// The tool destroys none of the changed lines (HOOK-4).
    Beside,
    /// The session had not read the file, and the tool names the lines that it
    /// replaces (HOOK-4).
    Unread,
    /// The daemon could not answer in time (HOOK-2).
    Late,
}
