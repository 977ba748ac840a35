//! The kinds of leases, and why a lease is refused.

/// The opens that a lease reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Opens for writing, and truncation. The file must be open for reading
    /// only.
    Read,
    /// All other opens.
    Write,
}

/// Why a lease was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another process has the file open in a conflicting way.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Busy,
    /// The system or the file system has no leases, or the file is another
    /// user's.
    Unavailable,
}
