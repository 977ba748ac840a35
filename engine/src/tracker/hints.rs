//! What the system has told of a file since it was last read.

use touchmark_proto::Millis;

use crate::input::Hint;
use crate::tracker::reading::WRITE_DELAY;

/// The hints at one file, and the writer they speak of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    /// A writer has not closed yet.
    writing: bool,
    /// Since when; 0 if nothing but its name has come yet.
    since: Millis,
    /// Something was written since the last close that was counted.
    wrote: bool,
    /// Closed changes since the last read.
    closes: u32,
    /// Those of them that ended a write, not a mere open for writing.
    written_closes: u32,
    /// The first read ordered after the first of them was hinted at: an
    /// earlier one may have found the middle of the write that it ended.
    closed_from: u64,
    /// Nobody watched for a while (ATTR-13).
    gap: bool,
    /// It was taken away, nothing has come in its place, and its absence is not
    /// recorded yet: the first read ordered after that.
    gone: Option<u64>,
}

/// What a read answers for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Closed changes.
    pub closes: u32,
    /// Those of them that ended a write.
    pub written_closes: u32,
    /// What was read may be the middle of a write.
    pub writing: bool,
    /// Nobody watched for a while.
    pub gap: bool,
}

/// A writer that goes with the file when its name changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writer {
    writing: bool,
    wrote: bool,
}

impl Hints {
    /// Takes a hint in; whether a save begins with it. `next` is the number
    /// of the next read.
    pub(crate) fn note(&mut self, hint: Hint, now: Millis, next: u64) -> bool {
        let begins = !self.writing;
        if hint != Hint::Touched {
            self.gone = None;
        }
        match hint {
            Hint::Written | Hint::Appeared => {
                if begins {
                    self.since = 0;
                }
                // What appeared by a link has no writer that will close it.
                if hint == Hint::Written && self.since == 0 {
                    self.since = now;
                }
                self.writing = true;
                self.wrote = true;
                begins
            }
            Hint::Closed | Hint::WrittenAndClosed => {
                if self.closes == 0 {
                    self.closed_from = next;
                }
                self.closes += 1;
                self.written_closes += u32::from(self.wrote || hint == Hint::WrittenAndClosed);
                self.leave();
                begins
            }
            Hint::Removed => {
                // The writer of a name that is gone writes elsewhere, and
                // the absence is no part of what it wrote.
                self.leave();
                self.take_away(next);
                true
            }
            Hint::Touched => false,
        }
    }

    /// What was hinted at until the read of this number was ordered. `lost`
    /// if the file is still to be compared after a gap.
    pub(crate) fn take(&mut self, ticket: u64, lost: bool) -> Taken {
        let gap = std::mem::take(&mut self.gap) || lost;
        // What was read may be the middle of a write that has been closed
        // since: the close is the next read's, which that close has ordered.
        let ahead = self.closes > 0 && ticket < self.closed_from;
        if ahead && !gap {
            return Taken {
                closes: 0,
                written_closes: 0,
                writing: true,
                gap,
            };
        }
        Taken {
            closes: std::mem::take(&mut self.closes),
            written_closes: std::mem::take(&mut self.written_closes),
            writing: self.writing,
            gap,
        }
    }

    /// The closes are the next read's.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        self.closes += taken.closes;
        self.written_closes += taken.written_closes;
    }

    /// Nobody watched for a while.
    pub(crate) fn lose(&mut self) {
        self.gap = true;
        self.gone = None;
    }

    /// Whoever was writing may have closed unseen.
    pub(crate) fn interrupt(&mut self) {
        self.writing = false;
    }

    /// There is nothing by this name any more, as a read of this number or a
    /// later one will find.
    pub(crate) fn take_away(&mut self, next: u64) {
        self.gone = Some(next);
    }

    /// The read of this number found something there, or an absence that is
    /// recorded already.
    pub(crate) fn looked_at(&mut self, ticket: u64) {
        if self.gone.is_some_and(|from| from <= ticket) {
            self.gone = None;
        }
    }

    /// Whether the last that was told is that it was taken away.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.is_some()
    }

    /// What was written until now belongs to nobody who begins now.
    pub(crate) fn forget_written(&mut self) {
        self.wrote = false;
    }

    /// The changes so far are recorded.
    pub(crate) fn recorded(&mut self) {
        self.closes = 0;
        self.gap = false;
        self.gone = None;
    }

    /// The log begins: what was written until now is in its first content.
    pub(crate) fn begin(&mut self) {
        self.recorded();
        self.written_closes = 0;
        self.wrote = false;
    }

    /// Another name is the file's from now on, and its writer goes there.
    pub(crate) fn leave(&mut self) -> Writer {
        Writer {
            writing: std::mem::take(&mut self.writing),
            wrote: std::mem::take(&mut self.wrote),
        }
    }

    /// A file came to this name; `closed` if that is a closed change which no
    /// hint counts.
    pub(crate) fn arrive(&mut self, writer: Writer, closed: bool) {
        self.closes += u32::from(closed);
        self.writing = writer.writing;
        self.wrote = writer.wrote;
        self.gone = None;
    }

    /// Takes over what was hinted at by another name.
    pub(crate) fn join(&mut self, other: &Self) {
        self.closes += other.closes;
        self.written_closes += other.written_closes;
        self.gap |= other.gap;
        if other.closes > 0 {
            self.leave();
        }
        self.writing |= other.writing;
        self.wrote |= other.wrote;
        self.gone = None;
    }

    /// A writer has not closed yet.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing
    }

    /// Something was written that no read answers for.
    pub(crate) fn any(&self) -> bool {
        self.closes > 0 || self.wrote || self.writing
    }

    /// Until when the content may be the middle of a save: somebody writes in
    /// it who has not closed it, or whose close is still to be read, and began
    /// a moment ago (ATTR-12).
    pub(crate) fn mid_save(&self) -> Option<Millis> {
        (self.writing || self.closes > 0).then(|| self.since + WRITE_DELAY)
    }

    /// Whether forgetting them loses nothing.
    pub(super) fn is_idle(&self) -> bool {
        !self.any() && !self.gap && !self.is_gone()
    }
}
