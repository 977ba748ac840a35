//! Reads that are owed: of which paths a read would tell more than is known,
//! and which are under way.

use touchmark_proto::RelPath;

use crate::by_path::ByPath;

/// What is owed of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    /// Hinted at, and its read is not ordered yet.
    hinted: bool,
    /// Its changes come without events, and it is to be read before an answer
    /// speaks of it (LOSS-2).
    unseen: bool,
    /// It could not be read, and nothing tells when it can be (LOSS-4).
    unreadable: bool,
    /// Ordered and not done.
    read: Option<Outstanding>,
}

/// The read of one path that is under way, and the one that is owed after it.
/// However many ask and whatever is hinted at meanwhile, there are no more.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The order under way.
    under_way: u64,
    /// The next order: whoever arrived since shares it.
    next: Option<Next>,
    /// Somebody has given up waiting for it.
    slow: bool,
}

/// A read to begin as soon as the one under way is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub ticket: u64,
    pub bytes: bool,
    pub whole: bool,
}

/// Everything that is owed: a path without anything is not in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads(ByPath<Owed>);

impl Reads {
    fn get(&self, path: &RelPath) -> Owed {
        self.0.get(path).copied().unwrap_or_default()
    }

    /// The one place where an entry changes, and goes once nothing is owed.
    fn change<R>(&mut self, path: &RelPath, change: impl FnOnce(&mut Owed) -> R) -> R {
        let mut owed = self.get(path);
        let result = change(&mut owed);
        if owed.hinted || owed.unseen || owed.unreadable || owed.read.is_some() {
            self.0.insert(path.clone(), owed);
        } else {
            self.0.remove(path);
        }
        result
    }

    /// Whether a read of a path would tell more than is known, or is under
    /// way.
    pub(super) fn is_owed(&self, path: &RelPath) -> bool {
        self.0.contains_key(path)
    }

    /// All those paths.
    pub(super) fn owed(&self) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // put in order by who asks
        self.0.keys()
    }

    /// A path was hinted at.
    pub(super) fn hint(&mut self, path: &RelPath) {
        self.change(path, |owed| owed.hinted = true);
    }

    /// Whether it was since its last read was ordered.
    pub(super) fn is_hinted(&self, path: &RelPath) -> bool {
        self.get(path).hinted
    }

    /// A path may change without an event.
    pub(super) fn unseen(&mut self, path: &RelPath) {
        self.change(path, |owed| owed.unseen = true);
    }

    /// A path is about to be read; whether it may have changed without an
    /// event.
    pub(super) fn take_unseen(&mut self, path: &RelPath) -> bool {
        self.change(path, |owed| std::mem::take(&mut owed.unseen))
    }

    /// Whether a path can be read.
    pub(super) fn readable(&mut self, path: &RelPath, readable: bool) {
        self.change(path, |owed| owed.unreadable = !readable);
    }

    /// The newest order of a path that shows what was written until now, if
    /// there is one.
    pub(super) fn newest(&self, path: &RelPath) -> Option<u64> {
        let owed = self.get(path);
        let read = owed.read.filter(|_| !owed.hinted && !owed.unreadable)?;
        Some(read.next.map_or(read.under_way, |next| next.ticket))
    }

    /// Whether a read of a path is under way.
    pub(super) fn is_under_way(&self, path: &RelPath) -> bool {
        self.get(path).read.is_some()
    }

    /// Orders a read of a path that begins after now, with this number or that
    /// of the one that is owed already; whether it begins at once.
    pub(super) fn order(&mut self, path: &RelPath, next: Next) -> (u64, bool) {
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
            shared.whole |= next.whole;
            (shared.ticket, false)
        })
    }

    /// A read is done; `None` if it is not the one that is under way, else the
    /// one to begin next, which is under way now.
    #[allow(clippy::option_option)] // whether it counts, and what follows
    pub(super) fn done(&mut self, path: &RelPath, ticket: u64) -> Option<Option<Next>> {
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

    /// Somebody gives up waiting for the read of a path; whether one is under
    /// way.
    pub(super) fn give_up(&mut self, path: &RelPath) -> bool {
        self.change(path, |owed| match &mut owed.read {
            Some(read) => {
                read.slow = true;
                true
            }
            None => false,
        })
    }

    /// Whether somebody has.
    pub(super) fn is_slow(&self, path: &RelPath) -> bool {
        self.get(path).read.is_some_and(|read| read.slow)
    }

    /// A path is watched no longer: only what is under way is left.
    pub(super) fn forget(&mut self, path: &RelPath) {
        self.change(path, |owed| {
            *owed = Owed {
                read: owed.read,
                ..Owed::default()
            };
        });
    }
}
