//! The tracker: which file a name resolves to, which files are being written,
//! which reads are pending, and what still has to be compared with the disk.

pub(crate) mod fences;
pub(crate) mod files;
pub(crate) mod hints;
pub(crate) mod live;
pub(crate) mod owed;
pub(crate) mod passing;
pub(crate) mod reading;
pub(crate) mod reconcile;
pub(crate) mod resolve;
pub(crate) mod turn;
pub(crate) mod ways;

use std::collections::{BTreeMap, BTreeSet};

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

/// What is known of files beyond the recorded facts. A restart loses it, except
/// the stats.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    /// The entry of each file: whether it is watched, and its last stat.
    pub files: Files,
    /// A counter that changes whenever a stat is noted.
    pub stamps_noted: u64,
    /// The live state of watched paths. A path without an entry is idle.
    pub live: ByPath<Live>,
    /// The reads that are pending or in progress.
    pub reads: Reads,
    /// When a path's read was last ordered. Old entries have no meaning.
    pub lately: ByPath<Millis>,
    /// Paths that are watched only for pending requests, with the number of
    /// those requests.
    borrowed: ByPath<u32>,
    /// Names in the state `Copy` for which the copy is not recorded yet, by the
    /// name that they are copies of.
    pub uncopied: BTreeMap<RelPath, BTreeSet<RelPath>>,
    /// Paths whose passing state has a deadline.
    pub unsettled: Paths,
    /// Paths in the state `Unconfirmed`.
    pub unconfirmed: Paths,
    /// What has to be compared with the disk before an answer covers it
    /// (LOSS-1).
    pub reconciliation: Reconciliation,
    /// Paths that the daemon is writing, with the number of the read after the
    /// write once that is ordered. Contents in between make no version
    /// (GUARD-1).
    pub writing: ByPath<Option<u64>>,
    pub fences: Fences,
    /// For each case-folded name, the spelling that was used first (SEEN-6).
    pub spellings: ByPath<RelPath>,
    /// Where names resolve to that are symlinks or hard links (FILE-1).
    pub ways: Ways,
    pub next_ticket: u64,
    episodes: u64,
}

impl Tracker {
    /// Returns a tracker with only these stats and the spellings of these
    /// names.
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

    /// Returns the live state of a path, or `None` if it is idle.
    pub(crate) fn live(&self, path: &RelPath) -> Option<&Live> {
        self.live.get(path)
    }

    /// Returns the live state of a path to change it, or `None` if it is idle.
    pub(crate) fn live_if_any(&mut self, path: &RelPath) -> Option<&mut Live> {
        self.live.get_mut(path)
    }

    /// Returns the live state of a path to change it; creates it if the path is
    /// idle.
    pub(crate) fn live_mut(&mut self, path: &RelPath) -> &mut Live {
        self.live.entry(path.clone()).or_default()
    }

    /// Notes that a writer of a path may have closed it unseen.
    fn interrupt(&mut self, path: &RelPath) {
        if let Some(live) = self.live_if_any(path) {
            live.hints.interrupt();
        }
    }

    /// Removes the live state of a path.
    pub(crate) fn forget_live(&mut self, path: &RelPath) -> Option<Live> {
        self.settled(path);
        self.live.remove(path)
    }

    /// Returns the number for the next save of any file.
    pub(crate) fn next_episode(&mut self) -> u64 {
        self.episodes += 1;
        self.episodes
    }

    /// Returns the number for the next order to the shell.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// Returns the name by which a path is watched, or `None`.
    pub(crate) fn watched(&self, path: &RelPath) -> Option<&RelPath> {
        self.files.watched_as(path)
    }

    /// Returns every watched path that is a given name or below it.
    pub(crate) fn watched_below(&self, name: &RelPath) -> Vec<RelPath> {
        let from = self.files.watched_from(Some(name));
        let below = from.take_while(|path| path.as_bytes().starts_with(name.as_bytes()));
        let below = below.filter(|path| *path == name || path.below(name).is_some());
        below.cloned().collect()
    }

    /// Marks a path as watched. Returns whether it was not.
    pub(crate) fn watch(&mut self, path: &RelPath, config: &Config) -> bool {
        let news = self.files.watch(path);
        if news && config.case_insensitive {
            let spelling = self.spellings.entry(fold(path));
            spelling.or_insert_with(|| path.clone());
        }
        news
    }

    /// Forgets a path, unless a request or a copy needs it. Returns whether the
    /// path was watched and is forgotten.
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

    /// Counts one more pending request that needs a path.
    pub(crate) fn borrow(&mut self, path: &RelPath) {
        *self.borrowed.entry(path.clone()).or_default() += 1;
    }

    /// Counts one pending request less that needs a path. Returns whether none
    /// is left.
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

    /// Returns how often a stat was noted.
    pub(crate) fn stamps_noted(&self) -> u64 {
        self.stamps_noted
    }

    /// Drops what a recorded fact makes invalid.
    pub(crate) fn recorded(&mut self, record: &Record) {
        self.files.recorded(record);
    }

    /// Returns whether a path has a hint since its last read was ordered.
    pub(crate) fn is_hinted(&self, path: &RelPath) -> bool {
        self.reads.is_hinted(path)
    }

    /// Has these paths read again at the next fence.
    pub(crate) fn look_again(&mut self, paths: Vec<RelPath>) {
        for path in paths {
            self.reads.hint(&path);
        }
    }

    /// Notes that a path cannot be read. No event will say when that changes.
    pub(crate) fn cannot_read(&mut self, path: &RelPath) {
        self.reads.readable(path, false);
    }

    /// Notes that the daemon is writing a path. `last` is the number of the
    /// read after the write.
    pub(crate) fn writes(&mut self, path: &RelPath, last: Option<u64>) {
        self.writing.insert(path.clone(), last);
    }

    /// Returns the paths that the daemon is writing.
    pub(crate) fn written(&self) -> impl ExactSizeIterator<Item = &RelPath> {
        #[allow(clippy::iter_over_hash_type)] // the caller sorts them
        self.writing.keys()
    }

    /// Returns whether a read of a path is in progress or may find a change.
    pub(crate) fn is_owed(&self, path: &RelPath) -> bool {
        self.reads.is_owed(path) || self.reconciliation.concerns(path)
    }

    /// Returns those paths, without the ones still to be compared after a gap.
    pub(crate) fn owed(&self) -> impl Iterator<Item = &RelPath> {
        self.reads.owed()
    }

    /// Returns whether a request has stopped waiting for the read of a path.
    pub(crate) fn is_slow(&self, path: &RelPath) -> bool {
        self.reads.is_slow(path)
    }

    /// Notes that a request stops waiting for the read of a path, if one is in
    /// progress.
    pub(crate) fn give_up(&mut self, path: &RelPath) {
        if self.reads.give_up(path) {
            self.reconciliation.set_aside(path);
        }
    }
}
