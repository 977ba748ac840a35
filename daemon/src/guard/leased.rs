//! What a lease is asked for, and why there is none.

/// Which opens a lease is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opens for writing, and truncation. The descriptor is open for reading
    /// only.
    Read,
    /// Every other open.
    Write,
}

/// Why there is no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Somebody has the file open in a conflicting way.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Busy,
    /// The system or the file system has no leases, or the file is another
    /// user's.
    Unavailable,
}
