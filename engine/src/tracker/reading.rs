//! From hints to reads, and what is done with a read beside observing it.

use touchmark_proto::{Millis, RelPath};

use crate::by_path::ByPath;
use crate::effect::{Effect, ReadOrder};
use crate::engine::{Engine, Timer};
use crate::input::{Content, Found, Hint, ReadOutcome};
use crate::tracker::live::Live;

/// How long a write in progress waits to be read while nobody asks: its close
/// mostly comes first, and half a save is no version (ATTR-12).
pub(crate) const WRITE_DELAY: Millis = 250;

/// How long a change without a meaning of its own waits to be read.
pub(crate) const TOUCH_DELAY: Millis = 10;

/// A path read within this time is read again only after it, while nobody
/// asks: a name that changes all the time must not take all the time.
const READ_PAUSE: Millis = 5;

/// A read that took long is followed by a pause so many times as long, while
/// nobody asks (LOSS-4).
const PAUSES: u64 = 3;

/// So many orders are remembered before those without meaning are dropped.
const LATELY_KEPT: usize = 1_024;

/// The first pause before an unstable file is read again; it doubles.
const RETRY_DELAY: Millis = 20;

/// The longest such pause.
const RETRY_LONGEST: Millis = 2_000;

/// The read of one path that is under way, and the one that is owed after it.
/// However many ask and whatever is hinted at meanwhile, there are no more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outstanding {
    /// The order under way.
    under_way: u64,
    /// The next order: whoever arrived since shares it.
    owed: Option<Owed>,
    /// Somebody has given up waiting for it.
    pub slow: bool,
}

/// A read to begin as soon as the one under way is done.
#[derive(Clone, Copy, Debug)]
struct Owed {
    ticket: u64,
    bytes: bool,
    whole: bool,
}

impl Outstanding {
    /// The newest order.
    pub(crate) fn newest(&self) -> u64 {
        self.owed.map_or(self.under_way, |owed| owed.ticket)
    }
}

impl Engine {
    /// Orders a read of a path that begins after now: at once, or after the
    /// one that is under way.
    pub(crate) fn order_read(&mut self, path: &RelPath, bytes: bool) -> u64 {
        self.order(path, bytes, false)
    }

    /// The same; `whole` if all of it is to be read, however it has grown.
    pub(crate) fn order(&mut self, path: &RelPath, bytes: bool, whole: bool) -> u64 {
        self.tracker.dirty.remove(path);
        let next = self.tracker.next_ticket;
        if let Some(outstanding) = self.tracker.outstanding.get_mut(path) {
            let owed = outstanding.owed.get_or_insert(Owed {
                ticket: next,
                bytes,
                whole,
            });
            owed.bytes |= bytes;
            owed.whole |= whole;
            self.tracker.next_ticket = next.max(owed.ticket + 1);
            return owed.ticket;
        }
        self.tracker.next_ticket += 1;
        let outstanding = Outstanding {
            under_way: next,
            ..Outstanding::default()
        };
        self.tracker.outstanding.insert(path.clone(), outstanding);
        self.begin_read(path, next, bytes, whole);
        next
    }

    fn begin_read(&mut self, path: &RelPath, ticket: u64, bytes: bool, whole: bool) {
        let prefixes = self.prefixes_wanted(path);
        self.out.push(Effect::Read(ReadOrder {
            path: path.clone(),
            ticket,
            prefixes,
            bytes,
            keep: true,
            whole,
        }));
    }

    /// Orders a read that nobody waits for, unless one is under way: what was
    /// hinted at meanwhile is read some time after it.
    pub(crate) fn look_soon(&mut self, path: &RelPath) {
        if self.tracker.outstanding.contains_key(path) {
            self.tracker.dirty.insert(path.clone());
        } else {
            self.order_read(path, false);
        }
    }

    /// The read that shows what was written to a path until now. One that may
    /// lack the bytes is not shared where they are wanted.
    pub(crate) fn read_for_answer(&mut self, path: &RelPath, bytes: bool) -> u64 {
        let unseen = self.tracker.unseen.remove(path);
        let lost = self.tracker.reconciliation.take(path);
        if unseen || lost {
            self.interrupt(path);
            self.tracker.live_mut(path).hints.lose();
        }
        let hinted = self.tracker.dirty.contains(path) || self.tracker.unreadable.contains(path);
        let under_way = self.tracker.outstanding.get(path).map(|read| read.newest());
        let ticket = match under_way {
            Some(newest) if !(unseen || lost || hinted || bytes) => newest,
            _ => self.order_read(path, bytes),
        };
        if lost {
            self.tracker.reconciliation.ordered(path, ticket);
        }
        ticket
    }

    /// Contents that may turn out to be the beginning of the next one (ATTR-5).
    fn prefixes_wanted(&self, path: &RelPath) -> Vec<u64> {
        let contents = self.tracker.passing(path).contents().iter();
        let mut sizes: Vec<u64> = contents.map(|back| back.held.size).collect();
        sizes.retain(|size| *size > 0);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    pub(crate) fn hint(&mut self, path: &RelPath, hint: Hint) {
        self.counts.hints += 1;
        if !self.tracker.watched.contains(path) {
            return;
        }
        self.note_for_audits(path);
        let (next, episode) = (self.tracker.next_ticket, self.tracker.next_episode());
        let now = self.now;
        let live = self.tracker.live_mut(path);
        if live.hints.note(hint, now, next) {
            live.save.episode = episode;
        }
        match hint {
            // What is soon overwritten is still to be known (SYNC-6).
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
        let now = self.now;
        if self.tracker.lately.len() > LATELY_KEPT {
            self.tracker
                .lately
                .retain(|_, time| *time + READ_PAUSE > now);
        }
        self.tracker
            .lately
            .get(path)
            .is_some_and(|time| *time + READ_PAUSE > now)
    }

    pub(crate) fn read_in(&mut self, path: &RelPath, delay: Millis) {
        self.tracker.dirty.insert(path.clone());
        self.timers
            .insert((self.now + delay, Timer::Read(path.clone())));
    }

    pub(crate) fn read_done(&mut self, path: &RelPath, ticket: u64, outcome: ReadOutcome) {
        let Some(mut outstanding) = self.tracker.outstanding.remove(path) else {
            return;
        };
        if outstanding.under_way != ticket {
            self.tracker.outstanding.insert(path.clone(), outstanding);
            return;
        }
        let owed = outstanding.owed.take();
        if let Some(owed) = owed {
            outstanding.under_way = owed.ticket;
            self.tracker.outstanding.insert(path.clone(), outstanding);
        }
        let mut file = self.found_by(path, ticket, &outcome);
        let there = matches!(outcome.found, Found::File(_));
        if there && file.is_some() {
            self.join_as_recorded(path);
            file = Some(self.file_of(path));
        }
        // While the daemon itself writes here, only its last step counts.
        let last = file
            .as_ref()
            .and_then(|file| self.tracker.writing.get(file).copied());
        let settled = match last {
            None => true,
            Some(last) => last.is_some_and(|last| last <= ticket),
        };
        if let Some(file) = file.as_ref().filter(|_| settled) {
            self.tracker.writing.remove(file);
            self.observe(file, ticket, &outcome);
            self.looked(file, ticket);
        }
        // Where there is no file, there is nothing to be one.
        if there {
            let alone = self.file_of(path);
            self.join_alike(path, ticket);
            let file = self.file_of(path);
            let held = self.state.paths.get(&file).map(|state| state.held.hash);
            if file != alone && held.is_some_and(|held| held != outcome.hash()) {
                // What was found by this name is not known of the file yet.
                self.look_too(path, &file);
            }
        }
        let file = self.file_of(path);
        self.tracker
            .reconciliation
            .read_done(path, ticket, self.now);
        for pending in self.pending.values_mut() {
            let awaited = release(&mut pending.reads, path, ticket);
            if awaited {
                pending.since = self.now;
            }
            pending.take_found(path, &outcome, awaited);
            if file != *path {
                let awaited = awaited || pending.found.contains_key(path);
                pending.take_found(&file, &outcome, awaited);
            }
        }
        if let Some(owed) = owed {
            self.begin_read(path, owed.ticket, owed.bytes, owed.whole);
        } else if self.tracker.dirty.contains(path) {
            // A file that is written all the time must not take all of it.
            self.read_in(path, READ_PAUSE.max(outcome.took.saturating_mul(PAUSES)));
        }
        self.forget_idle(path);
        self.forget_idle(&file);
    }

    /// Drops the passing state of a path that nothing is going on with.
    pub(crate) fn forget_idle(&mut self, path: &RelPath) {
        // The stamp is worth keeping only while a mark may ask for it.
        if self.tracker.live(path).is_some_and(Live::is_idle)
            && self.state.edits_on(path).next().is_none()
        {
            self.tracker.forget_live(path);
        }
    }

    /// A content was read that is recorded.
    pub(crate) fn note_stamp(&mut self, path: &RelPath, content: Content) {
        let held = self.state.paths.get(path).map(|state| state.held.hash);
        if held != Some(Some(content.hash)) {
            self.tracker.stamps.forget(path);
        } else if self.tracker.stamps.note(path, content) {
            self.tracker.stamps_noted += 1;
        }
    }

    /// Reads an unstable file again, later each time (LOSS-4).
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

/// Takes a read out of what is waited for, if it was ordered late enough.
pub(crate) fn release(waiting: &mut ByPath<u64>, path: &RelPath, ticket: u64) -> bool {
    let done = waiting.get(path).is_some_and(|wanted| *wanted <= ticket);
    if done {
        waiting.remove(path);
    }
    done
}
