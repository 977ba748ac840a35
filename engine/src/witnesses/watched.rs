//! What is known of one marked name: what it held before, and whether all that
//! happened to it are the calls of the marks (ATTR-3).

use touchmark_proto::Millis;

use super::{Change, UNUSED};
use crate::input::{Mark, Marker, NameEvent, Prior};
use crate::ledger::record::Held;

/// How long a write in place may take, in milliseconds, from the mark to the last
/// change of the file. Two closes without a write in between are one event of the
/// system's: of a file that stays open for long, another author may have closed
/// it, too.
pub(super) const PROMPT: Millis = 20;

/// How long after its mark an event may be reported, in milliseconds. A later one
/// may be another author's, if the marked call has failed.
const REPORTED: Millis = 250;

/// The maximum number of events that are kept for one name.
const EVENTS: usize = 1_024;

/// The marks and events of a name that what is recorded may not have yet.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// What had the name before the first mark.
    prior: Prior,
    /// What the marked calls do, in their order.
    expected: Vec<Entry>,
    /// What has happened, in its order.
    happened: Vec<Entry>,
    /// The marks' processes as one: the earliest start, and the last time that a
    /// person can have typed into one.
    process: Option<Marker>,
    /// The last mark; `None` if there is none.
    last: Option<Last>,
    /// Something is not known.
    is_doubtful: bool,
    /// The read after which the marks count no more; `None` if none is ordered.
    until: Option<u64>,
    /// The read whose result is looked at.
    read: Option<u64>,
}

/// An event that is expected or has happened.
#[derive(Clone, Copy, Debug)]
struct Entry {
    event: NameEvent,
    /// The number of the next read when this was reported. An earlier read may
    /// not have found what it left.
    next_read: u64,
}

/// What the last mark says.
#[derive(Clone, Copy, Debug)]
struct Last {
    made: Millis,
    /// When it was reported.
    at: Millis,
    in_place: bool,
    /// Whether nothing has the name after the call.
    removes: bool,
    inode: Option<u64>,
}

/// When a mark or event was reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    pub now: Millis,
    /// The number of the next read.
    pub next_read: u64,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            prior: Prior::Unknown,
            expected: Vec::new(),
            happened: Vec::new(),
            process: None,
            last: None,
            is_doubtful: false,
            until: None,
            read: None,
        }
    }
}

impl Watched {
    /// Adds a mark. `is_recorded`: what had the name is what is recorded of the
    /// file, or nothing is.
    pub(super) fn add(&mut self, mark: &Mark, at: Reported, is_recorded: bool) {
        if self.last.is_none() {
            self.prior = mark.prior;
            // Another author may have changed the file since. If not, what has
            // happened so far has left what is recorded.
            self.is_doubtful |= !is_recorded;
            self.happened.clear();
        }
        // A call that must not replace what has the name fails, if nothing else
        // happens. What it causes otherwise is not expected.
        if mark.is_poor {
            return;
        }
        if let Some(last) = self.last
            && last.in_place
            && !mark.prior.is_older_than(last.made + PROMPT)
        {
            self.is_doubtful = true;
        }
        let events = mark.events.iter().flatten();
        let next_read = at.next_read;
        let events = events.map(|event| Entry {
            event: *event,
            next_read,
        });
        self.expected.extend(events);
        self.is_doubtful |= mark.events.is_none();
        self.is_doubtful |= mark.process.is_none();
        if let Some(process) = mark.process {
            let all = self.process.get_or_insert(process);
            all.began = all.began.min(process.began);
            all.typed = all.typed.max(process.typed);
        }
        self.until = None;
        self.last = Some(Last {
            made: mark.made,
            at: at.now,
            in_place: mark.in_place,
            removes: mark.removes,
            inode: mark.inode,
        });
        self.limit();
    }

    /// Notes what happened to the name. `told`: when the witness learned it.
    pub(super) fn happened(&mut self, event: NameEvent, told: Millis, next_read: u64) {
        self.happened.push(Entry { event, next_read });
        if self.last.is_some_and(|last| last.made + REPORTED < told) {
            self.is_doubtful = true;
        }
        self.limit();
    }

    /// Gives up if there are too many events.
    fn limit(&mut self) {
        if self.expected.len().max(self.happened.len()) > EVENTS {
            self.missed();
            self.expected.clear();
            self.happened.clear();
        }
    }

    /// Notes that it is not known what happened.
    pub(super) fn missed(&mut self) {
        self.is_doubtful = true;
    }

    /// Notes that the result of this read is looked at.
    pub(super) fn read(&mut self, ticket: u64) {
        self.read = Some(ticket);
    }

    /// Begins again from a content that was recorded.
    pub(super) fn recorded(&mut self, held: Held) {
        self.prior = Prior::Held(held);
        self.settle(true);
    }

    /// Begins again from a content that a look has found.
    pub(super) fn swept(&mut self, held: Held) {
        self.prior = Prior::Held(held);
        self.clear();
    }

    /// Begins again: the file was found as it is recorded.
    pub(super) fn unchanged(&mut self) {
        self.settle(false);
    }

    /// Forgets what the last read has found, and keeps what may have come after
    /// it. Calls that have not done yet what is expected may still come: if another
    /// content `is_recorded`, it is not known any more whose that is.
    fn settle(&mut self, is_recorded: bool) {
        let read = self.read.take();
        let is_late = |entry: &&Entry| read.is_none_or(|read| entry.next_read > read);
        let (mut expected, mut happened) = (Vec::new(), Vec::new());
        let mut is_due = false;
        for event in NameEvent::ALL {
            let of = |all: &[Entry]| -> Vec<Entry> {
                let all = all.iter().filter(|entry| entry.event == event);
                all.copied().collect()
            };
            let (marks, events) = (of(&self.expected), of(&self.happened));
            let late = |all: &[Entry]| all.iter().filter(is_late).count();
            let due = marks.len().saturating_sub(events.len());
            is_due |= due > 0;
            let kept = late(&marks).max(late(&events)).max(due).min(marks.len());
            expected.extend_from_slice(&marks[marks.len() - kept..]);
            happened.extend_from_slice(&events[events.len() - late(&events)..]);
        }
        if expected.is_empty() && happened.is_empty() {
            return self.clear();
        }
        (self.expected, self.happened) = (expected, happened);
        self.is_doubtful = is_due && is_recorded || self.is_doubtful && !is_recorded;
    }

    /// Forgets the marks.
    fn clear(&mut self) {
        *self = Self {
            prior: self.prior,
            ..Self::default()
        };
    }

    /// Returns whether no mark was made since the content was recorded.
    pub(super) fn is_clear(&self) -> bool {
        self.last.is_none()
    }

    /// Returns whether the marks were without effect for long.
    pub(super) fn is_old(&self, now: Millis) -> bool {
        let last = self.last.filter(|_| self.until.is_none());
        last.is_some_and(|last| last.at + UNUSED <= now)
    }

    /// Lets old marks count until the read with this number.
    pub(super) fn count_until(&mut self, now: Millis, ticket: u64) {
        if self.is_old(now) {
            self.until = Some(ticket);
        }
    }

    /// Forgets marks without effect: a read with this number found the file as it
    /// is recorded.
    pub(super) fn looked(&mut self, ticket: u64) {
        if self.until.is_some_and(|until| until <= ticket) {
            self.clear();
        }
    }

    /// Returns what had the name before.
    pub(super) fn prior(&self) -> Prior {
        match self.prior {
            Prior::New if count(&self.happened, NameEvent::Created) > 0 => Prior::Absent,
            Prior::New => Prior::Unknown,
            prior => prior,
        }
    }

    /// Forgets what had the name before: it is not stored any more.
    pub(super) fn forget_prior(&mut self) {
        self.prior = Prior::Unknown;
    }

    /// Returns whether the marks' processes have made a change, and no others.
    /// `is_own` says whether a process is the command's.
    pub(super) fn explains(&self, change: Change, is_own: impl Fn(Marker) -> bool) -> bool {
        let Some(last) = self.last else {
            return false;
        };
        let is_its_file = last.inode.is_none() || last.inode == change.inode;
        let changed = change.changed.unwrap_or(Millis::MAX);
        let is_prompt = !last.in_place || changed <= last.made + PROMPT;
        let is_left = match change.is_removal {
            true => last.removes,
            false => !last.removes && is_its_file && is_prompt && !change.open,
        };
        let explained =
            |event: &NameEvent| count(&self.expected, *event) == count(&self.happened, *event);
        !self.is_doubtful
            && !change.is_contested
            && is_left
            && NameEvent::ALL.iter().all(explained)
            && self.process.is_some_and(is_own)
    }
}

fn count(entries: &[Entry], event: NameEvent) -> usize {
    let of_it = entries.iter().filter(|entry| entry.event == event);
    of_it.count()
}
