//! What is known of an untracked file that a witnessed command has marked: what
//! it held before, and whether all that happened to its name are the calls of
//! the marks (ATTR-3).

use touchmark_proto::Millis;

use super::PROMPT;
use crate::input::{Mark, Marker, NameEvent, Prior, SweptFile};
use crate::ledger::record::Held;

/// The maximum number of processes that are told apart for one name.
const PROCESSES: usize = 16;

/// How often each event happened.
type Counts = [u32; NameEvent::ALL.len()];

/// The marks and events of a name since it was recorded last.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    /// What had the name before the first mark.
    prior: Prior,
    expected: Counts,
    happened: Counts,
    processes: Vec<Marker>,
    last: Last,
    /// Something is not known.
    is_doubtful: bool,
    /// No mark was made since the content was recorded.
    is_recorded: bool,
}

/// What the last mark says.
#[derive(Clone, Copy, Debug)]
struct Last {
    made: Millis,
    in_place: bool,
    /// Whether nothing has the name after the call.
    removes: bool,
    inode: Option<u64>,
}

impl Watched {
    pub(super) fn new(mark: &Mark) -> Self {
        let mut new = Self {
            prior: mark.prior,
            expected: Counts::default(),
            happened: Counts::default(),
            processes: Vec::new(),
            last: Last {
                made: mark.made,
                in_place: false,
                removes: mark.removes,
                inode: mark.inode,
            },
            is_doubtful: false,
            is_recorded: false,
        };
        new.add(mark);
        new
    }

    /// Adds a mark.
    pub(super) fn add(&mut self, mark: &Mark) {
        if self.is_recorded {
            // Another author may have changed the file since.
            return *self = Self::new(mark);
        }
        // A call that must not replace what has the name fails, if nothing else
        // happens. What it causes otherwise is not expected.
        if mark.is_poor {
            return;
        }
        // Of a file that stays open, another author may have closed it, too: the
        // system reports two closes in a row as one.
        if self.last.in_place && !mark.prior.is_older_than(self.last.made + PROMPT) {
            self.is_doubtful = true;
        }
        match &mark.events {
            Some(events) => { events.iter() }.for_each(|event| self.expected[*event as usize] += 1),
            None => self.is_doubtful = true,
        }
        match mark.process {
            Some(process) if self.processes.contains(&process) => {}
            Some(process) if self.processes.len() < PROCESSES => self.processes.push(process),
            _ => self.is_doubtful = true,
        }
        self.last = Last {
            made: mark.made,
            in_place: mark.in_place,
            removes: mark.removes,
            inode: mark.inode,
        };
    }

    /// Notes what happened to the name.
    pub(super) fn happened(&mut self, event: NameEvent) {
        self.happened[event as usize] += 1;
    }

    /// Notes that it is not known what happened.
    pub(super) fn missed(&mut self) {
        self.is_doubtful = true;
    }

    /// Begins again from a content that was recorded.
    pub(super) fn recorded(&mut self, held: Held) {
        self.prior = Prior::Held(held);
        (self.expected, self.happened) = Default::default();
        self.processes.clear();
        self.is_recorded = true;
    }

    /// Returns what had the name before.
    pub(super) fn prior(&self) -> Prior {
        match self.prior {
            Prior::New if self.happened[NameEvent::Created as usize] > 0 => Prior::Absent,
            Prior::New => Prior::Unknown,
            prior => prior,
        }
    }

    /// Returns whether the marks' processes have made a change, and no others.
    /// `is_own` says whether a process is the command's.
    pub(super) fn explains(&self, change: &SweptFile, is_own: impl Fn(Marker) -> bool) -> bool {
        let Last { made, inode, .. } = self.last;
        let is_removed = change.after.hash.is_none();
        let is_its_file = is_removed || inode.is_none() || inode == change.inode;
        let changed = change.changed_ms.unwrap_or(Millis::MAX);
        let is_prompt = is_removed || !self.last.in_place || changed <= made + PROMPT;
        !self.is_doubtful
            && !change.is_open
            && self.expected == self.happened
            && self.last.removes == is_removed
            && is_its_file
            && is_prompt
            && { self.processes.iter() }.all(|process| is_own(*process))
    }
}
