//! The daemon's time.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use touchmark_proto::Millis;

use crate::system::clock;

/// Where a timeline takes the time from, in milliseconds.
pub trait Clocks: Debug + Send + Sync {
    /// Since 1970, by the wall clock: it may be set, forward or back.
    fn wall(&self) -> Millis;
    /// Since some moment. Never set; goes on while the machine sleeps.
    fn running(&self) -> Millis;
}

/// The system's.
#[derive(Debug)]
struct System;

impl Clocks for System {
    fn wall(&self) -> Millis {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, millis)
    }

    fn running(&self) -> Millis {
        millis(clock::running())
    }
}

/// Wall-clock time that never goes back. It follows the wall clock forward,
/// also over a sleep of the machine; where that was set back, it goes on from
/// where it was. Clones are the same timeline.
#[derive(Clone, Debug)]
pub struct Timeline {
    clocks: Arc<dyn Clocks>,
    /// What to add to the running time. Only ever grows.
    ahead: Arc<AtomicI64>,
    /// The running time at the start.
    start: Millis,
}

impl Timeline {
    /// From now on, but not before `least`, the newest time on record: the
    /// wall clock may have been set back since.
    pub fn start(least: Millis) -> Self {
        Self::by(Arc::new(System), least)
    }

    fn by(clocks: Arc<dyn Clocks>, least: Millis) -> Self {
        let start = clocks.running();
        Self {
            ahead: Arc::new(AtomicI64::new(difference(least, start))),
            clocks,
            start,
        }
    }

    /// Now.
    pub fn now(&self) -> Millis {
        // In this order: whatever time passes in between makes the wall clock
        // seem late, which changes nothing, and never early.
        let wall = self.clocks.wall();
        let running = self.clocks.running();
        let seen = difference(wall, running);
        let ahead = self.ahead.fetch_max(seen, Ordering::Relaxed).max(seen);
        running.saturating_add_signed(ahead)
    }

    /// How long it has run.
    pub fn uptime(&self) -> Millis {
        self.clocks.running().saturating_sub(self.start)
    }

    /// The moment at which [`Timeline::now`] reaches `time`, or later: sleeps
    /// of the machine and jumps of the wall clock bring it nearer.
    pub fn instant(&self, time: Millis) -> Instant {
        // A deadline that far away is as good as none, and cannot overflow.
        const FAR: Millis = 365 * 86_400_000;
        let left = time.saturating_sub(self.now()).min(FAR);
        Instant::now() + Duration::from_millis(left)
    }
}

fn difference(a: Millis, b: Millis) -> i64 {
    let signed = |millis| i64::try_from(millis).unwrap_or(i64::MAX);
    signed(a) - signed(b)
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
    #![allow(clippy::unwrap_used)]
    use std::sync::Mutex;

    use super::*;

    /// Clocks that a test sets: the wall clock's time, and the running time.
    #[derive(Debug, Default)]
    struct Hands(Mutex<(Millis, Millis)>);

    impl Hands {
        fn set(&self, wall: Millis, running: Millis) {
            *self.0.lock().unwrap() = (wall, running);
        }
    }

    impl Clocks for Hands {
        fn wall(&self) -> Millis {
            self.0.lock().unwrap().0
        }

        fn running(&self) -> Millis {
            self.0.lock().unwrap().1
        }
    }

    const HOUR: Millis = 3_600_000;

    #[test]
    fn no_earlier_than_what_is_on_record() {
        let future = Timeline::start(0).now() + 1_000_000;
        let time = Timeline::start(future);
        assert!(time.now() >= future);
        assert!(time.instant(time.now() + 1) > Instant::now() - Duration::from_millis(1));
        assert!(time.instant(0) <= Instant::now());
        let _far = time.instant(Millis::MAX);
    }

    #[test]
    fn a_sleep_of_the_machine_is_time_that_has_passed() {
        let hands = Arc::new(Hands::default());
        hands.set(100 * HOUR, HOUR);
        let time = Timeline::by(hands.clone(), 0);
        assert_eq!(time.now(), 100 * HOUR);
        hands.set(108 * HOUR, 9 * HOUR);
        assert_eq!(time.now(), 108 * HOUR);
        assert_eq!(time.uptime(), 8 * HOUR);
        // A virtual machine is stopped with all of its clocks but the wall's.
        hands.set(116 * HOUR, 9 * HOUR);
        assert_eq!(time.now(), 116 * HOUR);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_take_the_time_back() {
        let hands = Arc::new(Hands::default());
        hands.set(100 * HOUR, HOUR);
        let time = Timeline::by(hands.clone(), 101 * HOUR);
        assert_eq!(time.now(), 101 * HOUR, "no earlier than what is on record");
        hands.set(90 * HOUR, 2 * HOUR);
        assert_eq!(time.now(), 102 * HOUR, "it goes on");
        // Every clone is the same time, by whomever the clock was looked at.
        hands.set(104 * HOUR, 3 * HOUR);
        assert_eq!(time.clone().now(), 104 * HOUR);
        hands.set(50 * HOUR, 4 * HOUR);
        assert_eq!(time.now(), 105 * HOUR);
    }
}
