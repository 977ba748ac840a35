//! What is known now: which file a name leads to, what is being written, which
//! reads are owed, and what has still to be compared with the disk.

pub(crate) mod carry;
pub(crate) mod fences;
pub(crate) mod files;
mod hints;
pub(crate) mod live;
mod observe;
mod owed;
pub(crate) mod passing;
pub(crate) mod reading;
pub(crate) mod reconcile;
pub(crate) mod resolve;
mod same_file;
pub(crate) mod spoken;
mod swept;
pub(crate) mod turn;
pub(crate) mod ways;

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::by_path::{ByPath, Paths};
use crate::config::Config;
use crate::ledger::record::Record;
use fences::Fences;
use files::Files;
use live::Live;
use owed::Reads;
use reconcile::Reconciliation;
use resolve::fold;
use ways::Ways;

/// What is known of files beyond the recorded facts. Lost at a restart, but
/// for the stamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// What is kept of each file.
    pub files: Files,
    /// Changes whenever a stat is noted.
    stamps_noted: u64,
    /// Passing state of watched paths; absent means idle.
    live: ByPath<Live>,
    /// Reads that are owed or under way.
    reads: Reads,
    /// When a path's read was ordered lately; older entries have no meaning.
    lately: ByPath<Millis>,
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
        files: Files,
        names: impl Iterator<Item = &'a RelPath>,
    ) -> Self {
        let names = names.filter(|_| config.case_insensitive);
        Self {
            files: files.left(),
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

    /// Whoever was writing may have closed unseen.
    fn interrupt(&mut self, path: &RelPath) {
        if let Some(live) = self.live_if_any(path) {
            live.hints.interrupt();
        }
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
        self.files.watched_as(path)
    }

    /// Every path watched that is at a name or below it.
    pub(crate) fn watched_below(&self, name: &RelPath) -> Vec<RelPath> {
        let from = self.files.watched_from(Some(name));
        let below = from.take_while(|path| path.as_bytes().starts_with(name.as_bytes()));
        let below = below.filter(|path| *path == name || path.below(name).is_some());
        below.cloned().collect()
    }

    /// Has a path watched; whether it was not.
    pub(crate) fn watch(&mut self, path: &RelPath, config: &Config) -> bool {
        let news = self.files.watch(path);
        if news && config.case_insensitive {
            let spelling = self.spellings.entry(fold(path));
            spelling.or_insert_with(|| path.clone());
        }
        news
    }

    /// Forgets a path unless a request or a copy needs it; whether it did and
    /// the path was watched.
    pub(crate) fn unwatch(&mut self, path: &RelPath, config: &Config) -> bool {
        let needed = self.borrowed.contains_key(path) || self.passing(path).copy_of().is_some();
        if needed || !self.files.unwatch(path) {
            return false;
        }
        self.forget_live(path);
        self.forget_way(path);
        self.reads.forget(path);
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

    /// How often a stat was noted.
    pub(crate) fn stamps_noted(&self) -> u64 {
        self.stamps_noted
    }

    /// A fact was recorded.
    pub(crate) fn recorded(&mut self, record: &Record) {
        self.files.recorded(record);
    }

    /// Whether a path was hinted at since its last read was ordered.
    pub(crate) fn is_hinted(&self, path: &RelPath) -> bool {
        self.reads.is_hinted(path)
    }

    /// These are read again at the next fence.
    pub(crate) fn look_again(&mut self, paths: Vec<RelPath>) {
        for path in paths {
            self.reads.hint(&path);
        }
    }

    /// A path cannot be read: nothing tells when it can be.
    pub(crate) fn cannot_read(&mut self, path: &RelPath) {
        self.reads.readable(path, false);
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
        self.reads.is_owed(path) || self.reconciliation.concerns(path)
    }

    /// All those paths, but for what is still to be compared.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &RelPath> {
        self.reads.owed()
    }

    /// Whether somebody has given up waiting for the read of a path.
    pub(crate) fn is_slow(&self, path: &RelPath) -> bool {
        self.reads.is_slow(path)
    }

    /// Somebody gives up waiting for the read of a path, if one is under way.
    pub(crate) fn give_up(&mut self, path: &RelPath) {
        if self.reads.give_up(path) {
            self.reconciliation.set_aside(path);
        }
    }
}
