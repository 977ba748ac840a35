//! Pending reads: the paths that have to be read, and the reads in progress.

use touchmark_proto::RelPath;

use crate::by_path::ByPath;

/// The pending reads of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// There was a hint, and its read is not ordered yet.
    hinted: bool,
    /// The path's changes may cause no event, so it has to be read before an
    /// answer covers it (LOSS-2).
    unseen: bool,
    /// The path could not be read, and no event will say when it can be
    /// (LOSS-4).
    unreadable: bool,
    /// A process had the path's file open for writing at the last read. Its
    /// writes may cause no event of this path (LOSS-2).
    open: bool,
    /// The read that is ordered and not complete.
    read: Option<Outstanding>,
}

/// The read of one path that is in progress, and the one that follows it.
/// However many requests and hints arrive meanwhile, there are no more than
/// these two.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The number of the read in progress.
    under_way: u64,
    /// The next read. All requests that arrive now share it.
    next: Option<Next>,
    /// Whether a request has stopped waiting for the read in progress.
    slow: bool,
}

/// A read that begins as soon as the one in progress is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub ticket: u64,
    pub bytes: bool,
}

/// All pending reads. A path without any has no entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads(ByPath<Owed>);

impl Reads {
    fn get(&self, path: &RelPath) -> Owed {
        self.0.get(path).copied().unwrap_or_default()
    }

    /// Changes the entry of a path, and removes it if nothing is pending. All
    /// changes go through here.
    fn change<R>(&mut self, path: &RelPath, change: impl FnOnce(&mut Owed) -> R) -> R {
        let mut owed = self.get(path);
        let result = change(&mut owed);
        if owed.hinted || owed.unseen || owed.unreadable || owed.open || owed.read.is_some() {
            self.0.insert(path.clone(), owed);
        } else {
            self.0.remove(path);
        }
        result
    }

    /// Returns whether a read of a path is in progress or may find a change.
    pub(crate) fn is_owed(&self, path: &RelPath) -> bool {
        self.0.contains_key(path)
    }

    /// Returns all paths of which a read is in progress or may find a change.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // the caller sorts them
        self.0.keys()
    }

    /// Notes a hint about a path.
    pub(crate) fn hint(&mut self, path: &RelPath) {
        self.change(path, |owed| owed.hinted = true);
    }

    /// Returns whether a path has a hint since its last read was ordered.
    pub(crate) fn is_hinted(&self, path: &RelPath) -> bool {
        self.get(path).hinted
    }

    /// Notes that a path may change without an event.
    pub(crate) fn unseen(&mut self, path: &RelPath) {
        self.change(path, |owed| owed.unseen = true);
    }

    /// Returns whether a path may have changed without an event, and clears
    /// that, since it is about to be read.
    pub(crate) fn take_unseen(&mut self, path: &RelPath) -> bool {
        self.change(path, |owed| std::mem::take(&mut owed.unseen))
    }

    /// Notes whether a path can be read.
    pub(crate) fn readable(&mut self, path: &RelPath, readable: bool) {
        self.change(path, |owed| owed.unreadable = !readable);
    }

    /// Notes whether a process has the file of a path open for writing. While
    /// one has, each answer needs a read that begins after the question.
    pub(crate) fn open_for_writing(&mut self, path: &RelPath, open: bool) {
        self.change(path, |owed| owed.open = open);
    }

    /// Returns whether a process had the file of a path open for writing at the
    /// last read.
    pub(crate) fn is_open_for_writing(&self, path: &RelPath) -> bool {
        self.get(path).open
    }

    /// Returns the number of the newest ordered read that will find everything
    /// written to a path so far, or `None`.
    pub(crate) fn newest(&self, path: &RelPath) -> Option<u64> {
        let owed = self.get(path);
        let read = owed
            .read
            .filter(|_| !(owed.hinted || owed.unreadable || owed.open))?;
        Some(read.next.map_or(read.under_way, |next| next.ticket))
    }

    /// Returns whether a read of a path is in progress.
    pub(crate) fn is_under_way(&self, path: &RelPath) -> bool {
        self.get(path).read.is_some()
    }

    /// Orders a read of a path that begins after now. Returns its number, or
    /// the number of the one that is pending already, and whether it begins
    /// immediately.
    pub(crate) fn order(&mut self, path: &RelPath, next: Next) -> (u64, bool) {
        self.change(path, |owed| {
            owed.hinted = false;
            let Some(read) = &mut owed.read else {
                owed.read = Some(Outstanding {
                    under_way: next.ticket,
                    next: None,
                    slow: false,
                });
                return (next.ticket, true);
            };
            let shared = read.next.get_or_insert(next);
            shared.bytes |= next.bytes;
            (shared.ticket, false)
        })
    }

    /// Notes that a read is complete. Returns `None` if it is not the one in
    /// progress, else the read that begins now, if one follows.
    #[allow(clippy::option_option)] // whether the read counts, and which one follows
    pub(crate) fn done(&mut self, path: &RelPath, ticket: u64) -> Option<Option<Next>> {
        self.change(path, |owed| {
            let read = owed.read.as_mut().filter(|read| read.under_way == ticket)?;
            let next = read.next.take();
            match next {
                Some(next) => read.under_way = next.ticket,
                None => owed.read = None,
            }
            Some(next)
        })
    }

    /// Notes that a request stops waiting for the read of a path. Returns
    /// whether a read is in progress.
    pub(crate) fn give_up(&mut self, path: &RelPath) -> bool {
        self.change(path, |owed| match &mut owed.read {
            Some(read) => {
                read.slow = true;
                true
            }
            None => false,
        })
    }

    /// Returns whether a request has stopped waiting for the read in progress.
    pub(crate) fn is_slow(&self, path: &RelPath) -> bool {
        self.get(path).read.is_some_and(|read| read.slow)
    }

    /// Forgets a path that is no longer watched. Only a read in progress
    /// remains: no request needs the one that would follow.
    pub(crate) fn forget(&mut self, path: &RelPath) {
        self.change(path, |owed| {
            let read = owed.read.map(|read| Outstanding { next: None, ..read });
            *owed = Owed {
                read,
                ..Owed::default()
            };
        });
    }
}
