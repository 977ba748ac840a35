//! Looking at a name without opening what it stands for.

use rustix::fs::OFlags;

/// A handle on a name that opens nothing.
pub(crate) const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
