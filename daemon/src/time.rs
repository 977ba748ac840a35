//! The daemon's time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use touchmark_proto::Millis;

/// Wall-clock time that never goes back: read once at the start, moved on by
/// the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    wall: Millis,
    start: Instant,
}

impl Timeline {
    /// From now on, but not before `least`, the newest time on record: the
    /// wall clock may have been set back since.
    pub fn start(least: Millis) -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, millis);
        Self {
            wall: wall.max(least),
            start: Instant::now(),
        }
    }

    /// Now.
    pub fn now(&self) -> Millis {
        self.wall.saturating_add(self.uptime())
    }

    /// How long it has run.
    pub fn uptime(&self) -> Millis {
        millis(self.start.elapsed())
    }

    /// The moment at which [`Timeline::now`] reaches `time`.
    pub fn instant(&self, time: Millis) -> Instant {
        // A deadline that far away is as good as none, and cannot overflow.
        const FAR: Millis = 365 * 86_400_000;
        let ahead = time.saturating_sub(self.wall).min(FAR);
        self.start + Duration::from_millis(ahead)
    }
}

fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How far the local zone is from UTC at this moment, in milliseconds: for
/// times of day in messages.
pub fn utc_offset() -> i64 {
    i64::from(jiff::Zoned::now().offset().seconds()) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_earlier_than_what_is_on_record() {
        let future = Timeline::start(0).now() + 1_000_000;
        let time = Timeline::start(future);
        assert!(time.now() >= future);
        assert!(time.instant(time.now() + 1) > Instant::now() - Duration::from_millis(1));
        assert!(time.instant(0) <= Instant::now());
        let _far = time.instant(Millis::MAX);
    }
}
