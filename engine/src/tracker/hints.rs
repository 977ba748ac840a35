//! The hints about a file since it was last read.

use touchmark_proto::Millis;

use crate::disk::Hint;

/// How long a write in progress waits to be read if no request needs it, in
/// milliseconds. Mostly, the close comes first, and half of a save is no
/// version (ATTR-12).
pub(crate) const WRITE_DELAY: Millis = 250;

/// The hints about one file, and its writer as far as they show it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints {
    name: Name,
    /// When the writer began; 0 if only the name has appeared so far.
    since: Millis,
    closes: Closes,
    /// The file was not watched for some time (ATTR-13).
    gap: bool,
}

/// What the last hints say about the file's name.
#[derive(Clone, Copy, Debug)]
enum Name {
    /// It was not removed, or something has replaced it, or its absence is
    /// recorded.
    Present(Writer),
    /// It was removed.
    Gone {
        /// The number of the first read ordered after the removal.
        from: u64,
        /// Whether the file was renamed.
        has_moved: bool,
    },
}

impl Default for Name {
    fn default() -> Self {
        Self::Present(Writer::None)
    }
}

/// The writer of a file since the last close that was counted. It moves along
/// when the file gets another name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Nothing was written.
    #[default]
    None,
    /// A writer has written, and has not closed the file.
    Writing,
    /// A writer has not closed the file. What it wrote was before an edit that
    /// began since.
    Open,
    /// A writer has written. It may have closed the file unseen.
    Interrupted,
}

impl Writer {
    fn new(is_open: bool, wrote: bool) -> Self {
        match (is_open, wrote) {
            (true, true) => Self::Writing,
            (true, false) => Self::Open,
            (false, true) => Self::Interrupted,
            (false, false) => Self::None,
        }
    }

    /// Returns whether a writer has not closed the file.
    fn is_open(self) -> bool {
        matches!(self, Self::Writing | Self::Open)
    }

    /// Returns whether something was written that no close counts.
    fn wrote(self) -> bool {
        matches!(self, Self::Writing | Self::Interrupted)
    }
}

/// The closed changes since the last read.
#[derive(Clone, Copy, Debug, Default)]
struct Closes {
    count: u32,
    /// The number of those that ended a write, and not only an open for writing.
    written: u32,
    /// The number of the first read ordered after the first of them. An earlier
    /// read may have found the middle of the write.
    from: u64,
}

/// The hints that a read covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The number of closed changes.
    pub closes: u32,
    /// The number of the closed changes that ended a write.
    pub written_closes: u32,
    /// The content read may be the middle of a write.
    pub writing: bool,
    /// The file was not watched for some time.
    pub gap: bool,
}

impl Hints {
    /// Adds a hint. Returns whether a save begins with it. `next` is the number
    /// of the next read.
    pub(crate) fn note(&mut self, hint: Hint, now: Millis, next: u64) -> bool {
        let writer = self.writer();
        let begins = !writer.is_open();
        match hint {
            Hint::Written | Hint::Appeared => {
                if begins {
                    self.since = 0;
                }
                // A name that appeared by a link has no writer that will close
                // it.
                if hint == Hint::Written && self.since == 0 {
                    self.since = now;
                }
                self.name = Name::Present(Writer::Writing);
                begins
            }
            Hint::Closed | Hint::WrittenAndClosed => {
                if self.closes.count == 0 {
                    self.closes.from = next;
                }
                let wrote = writer.wrote() || hint == Hint::WrittenAndClosed;
                self.closes.count += 1;
                self.closes.written += u32::from(wrote);
                self.name = Name::default();
                begins
            }
            Hint::Removed => {
                // The writer of a removed name writes elsewhere, and the
                // removal is no part of its write.
                self.take_away(next, false);
                true
            }
            Hint::Touched => false,
        }
    }

    /// Takes the hints that a read with this number covers. `lost` says whether
    /// the file still has to be compared after a gap.
    pub(crate) fn take(&mut self, ticket: u64, lost: bool) -> Taken {
        let gap = std::mem::take(&mut self.gap) || lost;
        // The content may be the middle of a write that was closed since. That
        // close belongs to the next read, which it has ordered.
        let ahead = self.closes.count > 0 && ticket < self.closes.from;
        if ahead && !gap {
            return Taken {
                closes: 0,
                written_closes: 0,
                writing: true,
                gap,
            };
        }
        Taken {
            closes: std::mem::take(&mut self.closes.count),
            written_closes: std::mem::take(&mut self.closes.written),
            writing: self.is_writing(),
            gap,
        }
    }

    /// Returns the closes to the next read.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        self.closes.count += taken.closes;
        self.closes.written += taken.written_closes;
    }

    /// Notes that the file was not watched for some time.
    pub(crate) fn lose(&mut self) {
        self.gap = true;
        self.appear();
    }

    /// Notes that a writer may have closed the file unseen.
    pub(crate) fn interrupt(&mut self) {
        if let Name::Present(writer) = &mut self.name {
            *writer = Writer::new(false, writer.wrote());
        }
    }

    /// Notes that the name was removed, or its file renamed. Reads from number
    /// `next` on will find nothing.
    pub(crate) fn take_away(&mut self, next: u64, by_rename: bool) {
        self.name = Name::Gone {
            from: next,
            has_moved: by_rename || self.has_moved(),
        };
    }

    /// Notes that a read with this number found a file, or an absence that is
    /// recorded already.
    pub(crate) fn looked_at(&mut self, ticket: u64) {
        if matches!(self.name, Name::Gone { from, .. } if from <= ticket) {
            self.name = Name::default();
        }
    }

    /// Returns whether the last hint said that the name was removed.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.name, Name::Gone { .. })
    }

    /// Returns whether the name is gone because its file was renamed.
    pub(crate) fn has_moved(&self) -> bool {
        matches!(
            self.name,
            Name::Gone {
                has_moved: true,
                ..
            }
        )
    }

    /// Forgets what was written so far, since it does not belong to an edit
    /// that begins now.
    pub(crate) fn forget_written(&mut self) {
        if let Name::Present(writer) = &mut self.name {
            *writer = Writer::new(writer.is_open(), false);
        }
    }

    /// Notes that the changes so far are recorded.
    pub(crate) fn recorded(&mut self) {
        self.closes.count = 0;
        self.gap = false;
        self.appear();
    }

    /// Notes that the path's log begins: everything written so far is in its
    /// first content.
    pub(crate) fn begin(&mut self) {
        self.recorded();
        self.closes.written = 0;
        self.forget_written();
    }

    /// Removes and returns the writer, because the file has got another name.
    pub(crate) fn leave(&mut self) -> Writer {
        match &mut self.name {
            Name::Present(writer) => std::mem::take(writer),
            Name::Gone { .. } => Writer::None,
        }
    }

    /// Notes that a file arrived at this name. `closed` says whether the
    /// arrival is a closed change that no hint counts.
    pub(crate) fn arrive(&mut self, writer: Writer, closed: bool) {
        self.closes.count += u32::from(closed);
        self.name = Name::Present(writer);
    }

    /// Adds the hints about another name of the file.
    pub(crate) fn join(&mut self, other: &Self) {
        self.closes.count += other.closes.count;
        self.closes.written += other.closes.written;
        self.gap |= other.gap;
        let one = match other.closes.count {
            0 => self.writer(),
            _ => Writer::None,
        };
        let other = other.writer();
        self.name = Name::Present(Writer::new(
            one.is_open() || other.is_open(),
            one.wrote() || other.wrote(),
        ));
    }

    /// Returns whether a writer has not closed the file yet.
    pub(crate) fn is_writing(&self) -> bool {
        self.writer().is_open()
    }

    /// Returns whether anything was written that no read covers.
    pub(crate) fn any(&self) -> bool {
        self.closes.count > 0 || self.writer() != Writer::None
    }

    /// Returns the time until which the content counts as the middle of a save,
    /// or `None`. It counts so if a writer that began recently has not closed
    /// the file, or if its close was not read yet (ATTR-12).
    pub(crate) fn mid_save(&self) -> Option<Millis> {
        (self.is_writing() || self.closes.count > 0).then(|| self.since + WRITE_DELAY)
    }

    fn writer(&self) -> Writer {
        match self.name {
            Name::Present(writer) => writer,
            Name::Gone { .. } => Writer::None,
        }
    }

    /// Forgets that the name was removed.
    fn appear(&mut self) {
        self.name = Name::Present(self.writer());
    }

    /// Returns whether these hints have no information, so that they can be
    /// dropped.
    pub(crate) fn is_idle(&self) -> bool {
        !self.any() && !self.gap && !self.is_gone()
    }
}
