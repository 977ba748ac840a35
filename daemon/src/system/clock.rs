//! The system's uptime, on Linux.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns the time since the system's boot, or since another fixed moment. It
/// continues while the machine sleeps, and is never set.
pub(crate) fn running() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}
