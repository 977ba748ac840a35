//! How long the system runs, on other Unix systems. Whether that goes on while
//! the machine sleeps differs between them; it does on macOS.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn running() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}
