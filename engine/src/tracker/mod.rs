//! What is known now: which file a name leads to, what is being written, which
//! reads are owed, and what has still to be compared with the disk.

pub(crate) mod carry;
pub(crate) mod fences;
mod hints;
pub(crate) mod live;
mod observe;
pub(crate) mod passing;
pub(crate) mod reading;
pub(crate) mod reconcile;
pub(crate) mod resolve;
pub(crate) mod spoken;
pub(crate) mod stamps;
pub(crate) mod ways;

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::by_path::{ByPath, Paths};
use crate::config::Config;
use crate::ledger::record::Record;
use fences::Fences;
use live::Live;
use reading::Outstanding;
use reconcile::Reconciliation;
use resolve::fold;
use stamps::Stamps;
use ways::Ways;

/// What is known of files beyond the recorded facts. Lost at a restart, but
/// for the stamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    stamps: Stamps,
    /// Changes whenever a stat is noted.
    stamps_noted: u64,
    /// Passing state of watched paths; absent means idle.
    live: ByPath<Live>,
    /// Paths hinted at whose read is not ordered yet.
    dirty: Paths,
    /// When a path's read was ordered lately; older entries have no meaning.
    lately: ByPath<Millis>,
    /// Reads ordered and not done.
    outstanding: ByPath<Outstanding>,
    /// Paths whose changes come without events, and that are to be read before
    /// an answer speaks of them (LOSS-2).
    unseen: Paths,
    /// Paths that could not be read: nothing tells when they can be (LOSS-4).
    unreadable: Paths,
    /// Paths that `Track` is in force for.
    watched: BTreeSet<RelPath>,
    /// Paths watched for requests in waiting, that no session holds yet.
    borrowed: ByPath<u32>,
    /// Names in the state `Copy` to which what is known of the old ones is not
    /// copied yet.
    uncopied: BTreeSet<RelPath>,
    /// Paths whose passing state ends with time.
    unsettled: Paths,
    /// Paths in the state `Unconfirmed`.
    unconfirmed: Paths,
    /// What must be compared before anything is answered (LOSS-1).
    pub reconciliation: Reconciliation,
    /// Paths being written by the daemon, with the read that will show the
    /// end of it: what lies between makes no version (GUARD-1).
    writing: ByPath<Option<u64>>,
    pub fences: Fences,
    /// The spelling first used, by folded name (SEEN-6).
    spellings: ByPath<RelPath>,
    /// Where names lead that are not plain (FILE-1).
    ways: Ways,
    next_ticket: u64,
    episodes: u64,
}

impl Tracker {
    /// One that knows nothing but stamps, and by which spelling each of these
    /// names is known.
    pub(crate) fn new<'a>(
        config: &Config,
        stamps: Stamps,
        names: impl Iterator<Item = &'a RelPath>,
    ) -> Self {
        let names = names.filter(|_| config.case_insensitive);
        Self {
            stamps,
            spellings: names.map(|name| (fold(name), name.clone())).collect(),
            next_ticket: 1,
            ..Self::default()
        }
    }

    /// What is going on with a path; `None` if nothing is.
    pub(crate) fn live(&self, path: &RelPath) -> Option<&Live> {
        self.live.get(path)
    }

    /// The same, to change it.
    pub(crate) fn live_if_any(&mut self, path: &RelPath) -> Option<&mut Live> {
        self.live.get_mut(path)
    }

    /// What is going on with a path from now on.
    pub(crate) fn live_mut(&mut self, path: &RelPath) -> &mut Live {
        self.live.entry(path.clone()).or_default()
    }

    /// Forgets what is going on with a path.
    fn forget_live(&mut self, path: &RelPath) -> Option<Live> {
        self.settled(path);
        self.live.remove(path)
    }

    /// The number of the next save of any file.
    fn next_episode(&mut self) -> u64 {
        self.episodes += 1;
        self.episodes
    }

    /// The number of the next order to the shell.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// The name by which a path is watched.
    pub(crate) fn watched(&self, path: &RelPath) -> Option<&RelPath> {
        self.watched.get(path)
    }

    /// Every path watched that is at a name or below it.
    pub(crate) fn watched_below(&self, name: &RelPath) -> Vec<RelPath> {
        let below = |path: &&RelPath| *path == name || path.below(name).is_some();
        self.watched.iter().filter(below).cloned().collect()
    }

    /// Has a path watched; whether it was not.
    pub(crate) fn watch(&mut self, path: &RelPath, config: &Config) -> bool {
        let news = self.watched.insert(path.clone());
        if news && config.case_insensitive {
            let spelling = self.spellings.entry(fold(path));
            spelling.or_insert_with(|| path.clone());
        }
        news
    }

    /// These are watched already.
    pub(crate) fn take_as_watched(&mut self, mut paths: BTreeSet<RelPath>) {
        self.watched.append(&mut paths);
    }

    /// Forgets a path unless a request or a copy needs it; whether it did and
    /// the path was watched.
    pub(crate) fn unwatch(&mut self, path: &RelPath, config: &Config) -> bool {
        let needed = self.borrowed.contains_key(path) || self.passing(path).copy_of().is_some();
        if needed || !self.watched.remove(path) {
            return false;
        }
        self.forget_live(path);
        self.forget_way(path);
        self.stamps.forget(path);
        for paths in [&mut self.dirty, &mut self.unseen, &mut self.unreadable] {
            paths.remove(path);
        }
        if config.case_insensitive {
            self.spellings.remove(&fold(path));
        }
        true
    }

    /// A request in waiting needs a path.
    pub(crate) fn borrow(&mut self, path: &RelPath) {
        *self.borrowed.entry(path.clone()).or_default() += 1;
    }

    /// It does no longer; whether none does.
    pub(crate) fn give_back(&mut self, path: &RelPath) -> bool {
        let Some(count) = self.borrowed.get_mut(path) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.borrowed.remove(path);
        }
        last
    }

    /// The stats that vouch for contents.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// How often a stat was noted.
    pub(crate) fn stamps_noted(&self) -> u64 {
        self.stamps_noted
    }

    /// A fact was recorded.
    pub(crate) fn recorded(&mut self, record: &Record) {
        self.stamps.recorded(record);
    }

    /// Whether a path was hinted at since its last read was ordered.
    pub(crate) fn is_hinted(&self, path: &RelPath) -> bool {
        self.dirty.contains(path)
    }

    /// These are read again at the next fence.
    pub(crate) fn look_again(&mut self, paths: Vec<RelPath>) {
        self.dirty.extend(paths);
    }

    /// A path cannot be read: nothing tells when it can be.
    pub(crate) fn cannot_read(&mut self, path: &RelPath) {
        self.unreadable.insert(path.clone());
    }

    /// The daemon writes a path; `last` is the read that shows the end of it.
    pub(crate) fn writes(&mut self, path: &RelPath, last: Option<u64>) {
        self.writing.insert(path.clone(), last);
    }

    /// Paths that the daemon writes.
    pub(crate) fn written(&self) -> impl ExactSizeIterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // put in order by who asks
        self.writing.keys()
    }

    /// Whether a read of a path would tell more than is known, or is under
    /// way.
    pub(crate) fn is_owed(&self, path: &RelPath) -> bool {
        let sets = [&self.dirty, &self.unseen, &self.unreadable];
        sets.iter().any(|paths| paths.contains(path))
            || self.outstanding.contains_key(path)
            || self.reconciliation.concerns(path)
    }

    /// All those paths, but for what is still to be compared; one may come
    /// twice.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // put in order by who asks
        let hinted = self.dirty.iter().chain(&self.unseen);
        hinted
            .chain(&self.unreadable)
            .chain(self.outstanding.keys())
    }

    /// Whether somebody has given up waiting for the read of a path.
    pub(crate) fn is_slow(&self, path: &RelPath) -> bool {
        self.outstanding.get(path).is_some_and(|read| read.slow)
    }

    /// Somebody gives up waiting for the read of a path, if one is under way.
    pub(crate) fn give_up(&mut self, path: &RelPath) {
        if let Some(read) = self.outstanding.get_mut(path) {
            read.slow = true;
            self.reconciliation.set_aside(path);
        }
    }
}
