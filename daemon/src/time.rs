//! The daemon's time.

mod history;

use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use touchmark_proto::Millis;
use touchmark_proto::daemon::Degraded;

use self::history::{AWAY, History};
use crate::system::{clock, proc};

/// The clocks that a timeline reads, in milliseconds.
pub trait Clocks: Debug + Send + Sync {
    /// Returns the time since 1970 by the wall clock, which may be set forward
    /// or back.
    fn wall(&self) -> Millis;
    /// Returns the time since an unspecified moment. It is never set, and
    /// continues while the machine sleeps.
    fn running(&self) -> Millis;
}

/// The clocks of the operating system.
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

/// The beginning of every message about the clock.
const CLOCK: &str = Degraded::CLOCK;

/// The difference in milliseconds between wall clock and running time above
/// which the wall clock was set.
const JUMP: i64 = 10_000;

/// Wall-clock time that never goes back. If the wall clock was set back, the
/// time continues from where it was. If it was set forward, the time follows
/// once no deadline is pending ([`Timeline::follow`]), and ages do not include
/// the time that was skipped ([`Timeline::before`]). Clones are the same
/// timeline.
#[derive(Clone, Debug)]
pub struct Timeline {
    clocks: Arc<dyn Clocks>,
    /// The milliseconds to add to the running time. It only grows.
    ahead: Arc<AtomicI64>,
    /// The running time at the start of the daemon.
    start: Millis,
    history: Arc<Mutex<History>>,
    /// The file that stores the history; `None` if it is not stored.
    file: Option<Arc<Path>>,
    /// Whether it was reported that the wall clock is behind.
    behind: Arc<AtomicBool>,
    /// Whether the machine was restarted, so that only the wall clock shows how
    /// long it was off.
    was_off: Arc<AtomicBool>,
    /// The last message about the wall clock, and the running time at which it
    /// was made.
    set: Arc<Mutex<Option<(Millis, String)>>>,
}

impl Timeline {
    /// Returns a timeline that starts now and is not stored.
    pub fn start() -> Self {
        Self::by(Arc::new(System), History::default(), None, 0)
    }

    /// Returns a timeline that continues from the history in a workspace's
    /// state directory, but not before `least`, the newest time on record.
    pub fn open(state: &Path, least: Millis) -> Self {
        let file = state.join("clock");
        let history = History::read(&file);
        Self {
            file: Some(Arc::from(file)),
            ..Self::by(Arc::new(System), history, proc::boot(), least)
        }
    }

    fn by(
        clocks: Arc<dyn Clocks>,
        mut history: History,
        boot: Option<String>,
        least: Millis,
    ) -> Self {
        let (wall, start) = (clocks.wall(), clocks.running());
        let last = history.seen.max(least);
        let goes_on = boot.is_some() && history.boot == boot;
        let now = if goes_on {
            last.max(start.saturating_add_signed(history.ahead))
        } else if last > 0 {
            last.max(wall.min(last.saturating_add(AWAY)))
        } else {
            // All time before now counts as skipped: no daemon ran then.
            history.skip(0, wall);
            wall
        };
        history.boot = boot;
        Self {
            ahead: Arc::new(AtomicI64::new(difference(now, start))),
            clocks,
            start,
            history: Arc::new(Mutex::new(history)),
            file: None,
            behind: Arc::default(),
            was_off: Arc::new(AtomicBool::new(!goes_on)),
            set: Arc::default(),
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Millis {
        let (running, ahead, seen) = self.look();
        // Small steps are normal corrections of the clock.
        let ahead = match seen - ahead {
            0..=JUMP => self.ahead.fetch_max(seen, Ordering::Relaxed).max(seen),
            _ => ahead,
        };
        running.saturating_add_signed(ahead)
    }

    /// Returns the running time, the offset that is added to it, and the offset
    /// of the wall clock.
    fn look(&self) -> (Millis, i64, i64) {
        // The order matters: time that passes between the two calls makes the
        // wall clock seem late, which has no effect, and never early.
        let wall = self.clocks.wall();
        let running = self.clocks.running();
        let ahead = self.ahead.load(Ordering::Relaxed);
        (running, ahead, difference(wall, running))
    }

    /// Follows a wall clock that was set forward. Pending deadlines would pass
    /// by that, so the caller must ensure that there are none.
    pub fn follow(&self) {
        let (running, ahead, seen) = self.look();
        let moment = |ahead| running.saturating_add_signed(ahead);
        // After the machine was off, the first look usually finds the wall
        // clock ahead.
        let was_off = self.was_off.swap(false, Ordering::Relaxed);
        if seen - ahead > JUMP {
            let (from, to) = (moment(ahead), moment(seen));
            lock(&self.history).skip(from, to);
            self.ahead.fetch_max(seen, Ordering::Relaxed);
            if !was_off {
                let (from, to) = (date(from), date(to));
                self.say(
                    running,
                    format!("{CLOCK} jumped from {from} to {to}: nothing is removed by age because of it"),
                );
            }
            self.keep();
        }
        let behind = ahead - seen > JUMP;
        if self.behind.swap(behind, Ordering::Relaxed) != behind && behind {
            let (says, newest) = (date(moment(seen)), date(moment(ahead)));
            self.say(
                running,
                format!(
                    "{CLOCK} was set back from {newest} to {says}: times continue from the later one"
                ),
            );
        }
    }

    fn say(&self, running: Millis, what: String) {
        *lock(&self.set) = Some((running, what));
    }

    /// Returns the message about a wall clock that was set within the last day
    /// and since the start (LIM-3); `None` if it was not set.
    pub fn told(&self) -> Option<String> {
        let set = lock(&self.set);
        let (at, what) = set.as_ref()?;
        (self.clocks.running() < at.saturating_add(AWAY)).then(|| what.clone())
    }

    /// Stores how much time has passed, for the next start.
    pub fn keep(&self) {
        let Some(file) = &self.file else { return };
        let seen = self.now();
        let mut history = lock(&self.history);
        history.seen = seen;
        history.ahead = self.ahead.load(Ordering::Relaxed);
        // If this fails, stored data is only kept for longer.
        if let Err(error) = history.write(file) {
            tracing::debug!("{}: {error}", file.display());
        }
    }

    /// Returns the moment that was `age` ago, without counting time that was
    /// skipped. Whatever has an earlier time is older than `age` (LIM-3).
    pub fn before(&self, age: Millis) -> Millis {
        let now = self.now();
        lock(&self.history).before(now, age)
    }

    /// Returns the moment at which something of this time has an age. Time
    /// that was skipped before that does not count (LIM-3).
    pub fn after(&self, time: Millis, age: Millis) -> Millis {
        lock(&self.history).after(time, age)
    }

    /// Returns how long the daemon has run.
    pub fn uptime(&self) -> Millis {
        self.clocks.running().saturating_sub(self.start)
    }

    /// Returns the moment at which [`Timeline::now`] reaches `time`. It may be
    /// reached earlier than that moment if the machine sleeps.
    pub fn instant(&self, time: Millis) -> Instant {
        // A deadline that far in the future is never reached, and cannot
        // overflow.
        const FAR: Millis = 365 * 86_400_000;
        let left = time.saturating_sub(self.now()).min(FAR);
        Instant::now() + Duration::from_millis(left)
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Formats a time for people and programs, to the second.
fn date(time: Millis) -> String {
    let seconds = i64::try_from(time / 1000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

fn difference(a: Millis, b: Millis) -> i64 {
    let signed = |millis| i64::try_from(millis).unwrap_or(i64::MAX);
    signed(a) - signed(b)
}

fn millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the offset of the local time zone from UTC at this moment, in
/// milliseconds. It is used for times of day in messages.
pub fn utc_offset() -> i64 {
    let offset = zone().to_offset(jiff::Timestamp::now());
    i64::from(offset.seconds()) * 1000
}

/// Returns the user's time zone. Where no variable names it, it is read from
/// the file of the system's zone: to find its name, the directories of all zones
/// would be listed at each start.
fn zone() -> jiff::tz::TimeZone {
    let system = jiff::tz::TimeZone::system;
    if std::env::var_os("TZ").is_some() {
        return system();
    }
    let rules = std::fs::read("/etc/localtime").ok();
    let zone = rules.and_then(|rules| jiff::tz::TimeZone::tzif("local", &rules).ok());
    zone.unwrap_or_else(system)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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

    const DAY: Millis = 24 * HOUR;

    /// Returns the timeline of a daemon in one run of the machine, with the
    /// history that an earlier daemon has stored.
    fn life(hands: &Arc<Hands>, kept: &History, boot: &str, least: Millis) -> Timeline {
        Timeline::by(hands.clone(), kept.clone(), Some(boot.into()), least)
    }

    /// Returns the history that a daemon stores at its end.
    fn end(time: &Timeline) -> History {
        let mut history = lock(&time.history).clone();
        history.seen = time.now();
        history.ahead = time.ahead.load(Ordering::Relaxed);
        history
    }

    #[test]
    fn deadlines_are_in_reach() {
        let time = Timeline::start();
        assert!(time.instant(time.now() + 1) > Instant::now() - Duration::from_millis(1));
        assert!(time.instant(0) <= Instant::now());
        let _far = time.instant(Millis::MAX);
    }

    #[test]
    fn a_sleep_of_the_machine_is_time_that_has_passed() {
        let hands = Arc::new(Hands::default());
        hands.set(100 * HOUR, HOUR);
        let time = life(&hands, &History::default(), "one", 0);
        assert_eq!(time.now(), 100 * HOUR);
        hands.set(108 * HOUR, 9 * HOUR);
        assert_eq!(time.now(), 108 * HOUR);
        assert_eq!(time.uptime(), 8 * HOUR);
        assert_eq!(time.before(8 * HOUR), 100 * HOUR);
        // Small steps are normal corrections of the clock.
        hands.set(108 * HOUR + 500, 9 * HOUR);
        assert_eq!(time.now(), 108 * HOUR + 500);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_take_the_time_back() {
        let hands = Arc::new(Hands::default());
        hands.set(100 * HOUR, HOUR);
        let time = life(&hands, &History::default(), "one", 101 * HOUR);
        assert_eq!(time.now(), 101 * HOUR, "no earlier than what is on record");
        hands.set(90 * HOUR, 2 * HOUR);
        time.follow();
        assert_eq!(time.now(), 102 * HOUR, "it goes on");
        // Clones are the same timeline.
        assert_eq!(time.clone().now(), 102 * HOUR);
    }

    #[test]
    fn a_wall_clock_that_is_set_forward_makes_nothing_older() {
        let hands = Arc::new(Hands::default());
        hands.set(1000 * DAY, HOUR);
        let time = life(&hands, &History::default(), "one", 999 * DAY);
        hands.set(1040 * DAY, 2 * HOUR);
        let deadline = 1000 * DAY + 2 * HOUR;
        assert!(time.now() < deadline, "no deadline passes by it");
        time.follow();
        assert_eq!(time.now(), 1040 * DAY);
        let oldest = time.before(30 * DAY);
        assert!(oldest <= 971 * DAY, "{} days", oldest / DAY);
        // What was there before it has an age later, by what was skipped.
        let aged = time.after(1000 * DAY, 30 * DAY);
        assert!(aged >= 1069 * DAY, "{} days", aged / DAY);
        assert_eq!(time.after(1040 * DAY, 30 * DAY), 1070 * DAY);
        hands.set(1070 * DAY, 30 * DAY + 2 * HOUR);
        assert!(
            time.before(30 * DAY) >= 1000 * DAY,
            "it has that age by then"
        );
        // Time that passes from then on counts.
        hands.set(1071 * DAY, 31 * DAY + 2 * HOUR);
        assert!(time.before(30 * DAY) > 1040 * DAY);
    }

    #[test]
    fn a_start_with_a_wrong_clock_makes_nothing_older() {
        let hands = Arc::new(Hands::default());
        hands.set(1000 * DAY, HOUR);
        let mut kept = end(&life(&hands, &History::default(), "one", 0));
        for (boot, wall, running) in [
            // Forty days ahead, in the same run of the machine and in another.
            ("one", 1040 * DAY, 2 * HOUR),
            ("two", 1090 * DAY, HOUR),
            // A thousand days behind, right again.
            ("three", 90 * DAY, HOUR),
            ("four", 1091 * DAY, HOUR),
        ] {
            hands.set(wall, running);
            let time = life(&hands, &kept, boot, 0);
            time.follow();
            let oldest = time.before(30 * DAY);
            assert!(oldest < 1000 * DAY, "{boot}: {} days", oldest / DAY);
            kept = end(&time);
        }
        // Time that passed while no daemon ran counts.
        let by = Timeline::by;
        let time = by(hands.clone(), kept.clone(), Some("four".into()), 0);
        let now = time.now();
        hands.set(1121 * DAY, 30 * DAY + HOUR);
        let time = by(hands, kept, Some("four".into()), 0);
        assert_eq!(time.before(30 * DAY), now);
    }

    #[test]
    fn a_clock_that_was_set_is_told_for_a_day_with_both_times() {
        let hands = Arc::new(Hands::default());
        hands.set(1000 * DAY, HOUR);
        let time = life(&hands, &History::default(), "one", 0);
        time.follow();
        assert_eq!(time.told(), None);
        hands.set(1040 * DAY + HOUR, 2 * HOUR);
        time.follow();
        let told = time.told().unwrap();
        for part in ["jumped", "1972-09-27T01:00:00Z", "1972-11-06T01:00:00Z"] {
            assert!(told.contains(part), "{told}");
        }
        hands.set(90 * DAY, 3 * HOUR);
        time.follow();
        let told = time.told().unwrap();
        for part in ["1970-04-01T00:00:00Z", "1972-11-06T02:00:00Z"] {
            assert!(told.contains(part), "{told}");
        }
        hands.set(1041 * DAY + 2 * HOUR, 27 * HOUR);
        time.follow();
        assert_eq!(time.told(), None, "a day later");
    }

    #[test]
    fn a_machine_that_was_off_for_a_weekend_has_the_right_time() {
        let hands = Arc::new(Hands::default());
        hands.set(1000 * DAY, HOUR);
        let kept = end(&life(&hands, &History::default(), "one", 0));
        hands.set(1003 * DAY, 1_000);
        let time = life(&hands, &kept, "two", 0);
        time.follow();
        assert_eq!((time.now(), time.told()), (1003 * DAY, None));
        // A change of the clock from then on is reported.
        hands.set(1013 * DAY, 2_000);
        time.follow();
        assert!(time.told().is_some());
        // The next daemon starts after the clock was set, in the same run of
        // the machine.
        let kept = end(&time);
        hands.set(1033 * DAY, 3_000);
        let time = life(&hands, &kept, "two", 0);
        time.follow();
        assert!(time.told().is_some());
    }

    #[test]
    fn without_a_history_nothing_is_old() {
        let hands = Arc::new(Hands::default());
        hands.set(1000 * DAY, HOUR);
        let time = life(&hands, &History::default(), "one", 0);
        assert_eq!(time.before(1), 0);
        assert_eq!(time.before(0), 1000 * DAY);
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let state = tempfile::tempdir().unwrap();
        let time = Timeline::open(state.path(), 0);
        let before = time.now();
        time.keep();
        let again = Timeline::open(state.path(), 0);
        // Asked in the order of time: the system's clocks go on meanwhile.
        assert!(again.now() >= before);
        assert_eq!(end(&again).skipped(), end(&time).skipped());
    }
}
