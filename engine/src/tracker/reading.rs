//! From hints to reads: when a path is read.

use touchmark_proto::{Millis, RelPath};

use crate::disk::Hint;
use crate::effect::{Effect, ReadOrder};
use crate::timers::Timer;
use crate::tracker::hints::WRITE_DELAY;
use crate::tracker::owed::Next;
use crate::tracker::turn::Turn;

/// How long a change without a meaning, such as of attributes, waits to be
/// read, in milliseconds.
pub(crate) const TOUCH_DELAY: Millis = 10;

/// How long a file that was found empty may be in the middle of a truncating
/// save, if the system reported no truncation (ATTR-5, ATTR-12). In
/// milliseconds.
pub(crate) const CUT_DELAY: Millis = 5;

/// The shortest time between two reads of a path if no request needs it, in
/// milliseconds. So a file that changes all the time does not use up all of the
/// loop's time.
const READ_PAUSE: Millis = 5;

/// After a slow read, the next one waits this many times as long as the read
/// took, if no request needs it (LOSS-4).
const PAUSES: u64 = 3;

/// The number of remembered orders above which those without meaning are
/// dropped.
const LATELY_KEPT: usize = 1_024;

/// The first pause before an unstable file is read again, in milliseconds. It
/// doubles each time.
const RETRY_DELAY: Millis = 20;

/// The longest such pause, in milliseconds.
const RETRY_LONGEST: Millis = 2_000;

impl Turn<'_> {
    /// Orders a read of a path that begins after now: immediately, or after the
    /// one in progress. Returns its number.
    pub(crate) fn order_read(&mut self, path: &RelPath, bytes: bool) -> u64 {
        let ticket = self.tracker.next_ticket;
        let next = Next { ticket, bytes };
        let (given, at_once) = self.tracker.reads.order(path, next);
        self.tracker.next_ticket += u64::from(given == ticket);
        if at_once {
            self.begin_read(path, next);
        }
        given
    }

    /// Begins a read of a path.
    pub(crate) fn begin_read(&mut self, path: &RelPath, next: Next) {
        // These contents may turn out to be the beginning of the next one
        // (ATTR-5).
        let contents = self.tracker.passing(path).contents().iter();
        let mut prefixes: Vec<u64> = contents.map(|back| back.held.size).collect();
        prefixes.retain(|size| *size > 0);
        prefixes.sort_unstable();
        prefixes.dedup();
        self.out.push(Effect::Read(ReadOrder {
            path: path.clone(),
            ticket: next.ticket,
            prefixes,
            bytes: next.bytes,
            keep: true,
        }));
    }

    /// Orders a read that no request waits for. If one is in progress, a hint
    /// is noted instead, and the path is read some time after it.
    pub(crate) fn look_soon(&mut self, path: &RelPath) {
        if self.tracker.reads.is_under_way(path) {
            self.tracker.reads.hint(path);
        } else {
            self.order_read(path, false);
        }
    }

    /// Orders, or finds, the read that will contain everything written to a
    /// path so far. Returns its number. A read that may lack the bytes is not
    /// shared by a request that wants them.
    pub(crate) fn read_for_answer(&mut self, path: &RelPath, bytes: bool) -> u64 {
        let unseen = self.tracker.reads.take_unseen(path);
        let lost = self.tracker.reconciliation.take(path);
        if unseen || lost {
            let hints = &mut self.tracker.live_mut(path).hints;
            hints.interrupt();
            hints.lose();
        }
        let ticket = match self.tracker.reads.newest(path) {
            Some(newest) if !(unseen || lost || bytes) => newest,
            _ => self.order_read(path, bytes),
        };
        if lost {
            self.tracker.reconciliation.ordered(path, ticket);
        }
        ticket
    }

    /// Handles a hint of the watcher about a path.
    pub(crate) fn hint(&mut self, path: &RelPath, hint: Hint) {
        self.counts.hints += 1;
        if !self.tracker.files.is_watched(path) {
            return;
        }
        self.tracker.ways.hinted(path);
        let (next, episode) = (self.tracker.next_ticket, self.tracker.next_episode());
        let now = self.now;
        let live = self.tracker.live_mut(path);
        if live.hints.note(hint, now, next) {
            live.save.episode = episode;
        }
        match hint {
            // The content may be overwritten soon, so it is read immediately
            // (SYNC-6).
            Hint::Closed | Hint::WrittenAndClosed | Hint::Removed
                if !self.was_read_lately(path) =>
            {
                self.tracker.lately.insert(path.clone(), self.now);
                self.look_soon(path);
            }
            Hint::Closed | Hint::WrittenAndClosed | Hint::Removed => {
                self.read_in(path, READ_PAUSE);
            }
            Hint::Written | Hint::Appeared => self.read_in(path, WRITE_DELAY),
            Hint::Touched => self.read_in(path, TOUCH_DELAY),
        }
    }

    fn was_read_lately(&mut self, path: &RelPath) -> bool {
        let (now, lately) = (self.now, &mut self.tracker.lately);
        let is_late = |time: Millis| time + READ_PAUSE > now;
        if lately.len() > LATELY_KEPT {
            lately.retain(|_, time| is_late(*time));
        }
        lately.get(path).is_some_and(|time| is_late(*time))
    }

    /// Has a path read after a delay, unless a request needs it earlier.
    pub(crate) fn read_in(&mut self, path: &RelPath, delay: Millis) {
        self.tracker.reads.hint(path);
        self.timers
            .insert((self.now + delay, Timer::Read(path.clone())));
    }

    /// Handles the end of a read that no other read follows: if there were
    /// hints meanwhile, the path is read after a pause. So a file that is
    /// written all the time does not use up all of the loop's time.
    pub(crate) fn read_on(&mut self, path: &RelPath, took: Millis) {
        if self.tracker.reads.is_hinted(path) {
            self.read_in(path, READ_PAUSE.max(took.saturating_mul(PAUSES)));
        }
    }

    /// Has an unstable file read again, after a longer pause each time
    /// (LOSS-4).
    pub(crate) fn retry(&mut self, path: &RelPath) {
        let retries = {
            let seen = &mut self.tracker.live_mut(path).seen;
            seen.retries = (seen.retries + 1).min(16);
            seen.retries
        };
        let pause = RETRY_DELAY.saturating_mul(1 << retries).min(RETRY_LONGEST);
        self.read_in(path, pause);
    }
}
