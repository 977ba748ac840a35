//! Other Unixes have no such handle: what is looked at is opened for reading,
//! without waiting for anybody.

use rustix::fs::OFlags;

/// The least that opens something.
pub(crate) const LOOK: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);
