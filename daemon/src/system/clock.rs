//! How long the system runs, on Linux.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time since the system was started, or another moment that stays. It
/// goes on while the machine sleeps, and is never set.
pub(crate) fn running() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    Duration::try_from(now).unwrap_or_default()
}
