//! The uptime, on Unix systems other than Linux. Whether it continues while the
//! machine sleeps differs between them; on macOS it does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn running() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
