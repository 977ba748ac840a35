//! Reconciliation: the comparison with the disk after a gap (ATTR-13, LOSS-1,
//! LOSS-2). A gap is the time before a start, an overflow, a replaced
//! directory, another file system that was mounted, or a place without events.
//!
//! If a stat proves a content, the stat is compared; else the file is read.
//! Only tracked files are compared, a limited number at a time, so that the
//! event loop can handle other events. A file that is lost again before its
//! turn is still read once. If coverage is lost again and again, the comparison
//! begins later each time, unless a request needs it. A request starts it
//! immediately and waits only for the files in its scope, which are read first.

use std::collections::BTreeSet;

use touchmark_proto::{Millis, RelPath};

use crate::by_path::ByPath;
use crate::effect::{Comparison, Effect};
use crate::timers::Timer;
use crate::tracker::turn::Turn;

/// The maximum number of files that are read at a time.
const WINDOW: usize = 512;

/// The maximum number of stats that are compared at a time. That takes some
/// milliseconds.
const COMPARED: usize = 8_192;

/// The delay of the comparison after the second loss in a row, if no request
/// needs it, in milliseconds. It doubles with each further loss.
const FIRST_PAUSE: Millis = 100;

/// The longest such delay, in milliseconds.
const LONGEST_PAUSE: Millis = 5_000;

/// A loss this long after the previous one begins a new row, in milliseconds.
const IN_A_ROW: Millis = 10_000;

/// What still has to be compared with the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reconciliation {
    /// Paths whose stat proves their content, if it is still the same.
    unchecked: BTreeSet<RelPath>,
    /// The comparison in progress: its number and its paths.
    checking: Option<(u64, Vec<RelPath>)>,
    /// The number of the last comparison ordered.
    checks: u64,
    /// Whether the files of a comparison have to be watched first.
    track: bool,
    /// Paths whose read is not ordered yet.
    waiting: BTreeSet<RelPath>,
    /// Reads that are ordered and not complete.
    ordered: ByPath<u64>,
    /// When a read or a comparison of stats was last completed.
    progress: Millis,
    /// Before this time, nothing is ordered unless a request needs it.
    not_before: Millis,
    /// The delay after the latest loss, in milliseconds.
    pause: Millis,
    /// When coverage of everything was last lost.
    lost_at: Option<Millis>,
}

impl Reconciliation {
    /// Returns whether some content on record may be out of date. No answer
    /// covers it until it was compared.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.unchecked.is_empty()
            || self.checking.is_some()
            || !self.waiting.is_empty()
            || !self.ordered.is_empty()
    }

    /// Returns whether a path still has to be compared, or is being read for
    /// that.
    pub(crate) fn concerns(&self, path: &RelPath) -> bool {
        self.awaits(path) || self.ordered.contains_key(path)
    }

    /// Returns all paths still to be compared. A path may occur twice.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &RelPath> {
        let checking = self.checking.iter().flat_map(|(_, paths)| paths);
        let later = self.waiting.iter().rev().chain(self.unchecked.iter().rev());
        later.chain(checking).chain(self.ordered.keys())
    }

    /// Returns an upper bound of the number of paths still to be compared.
    pub(crate) fn len(&self) -> usize {
        let checking = self.checking.as_ref().map_or(0, |(_, paths)| paths.len());
        self.unchecked.len() + self.waiting.len() + checking + self.ordered.len()
    }

    /// Returns when the comparison last made progress.
    pub(crate) fn progress(&self) -> Millis {
        self.progress
    }

    /// Removes a path from those to be compared, since it is read now for a
    /// request. Returns whether it was one of them.
    pub(crate) fn take(&mut self, path: &RelPath) -> bool {
        let unchecked = self.unchecked.remove(path);
        self.waiting.remove(path) || unchecked
    }

    /// Notes that the read of a path to be compared was ordered.
    pub(crate) fn ordered(&mut self, path: &RelPath, ticket: u64) {
        self.ordered.insert(path.clone(), ticket);
    }

    /// Stops waiting for the read of a path, for all requests.
    pub(crate) fn set_aside(&mut self, path: &RelPath) {
        self.ordered.remove(path);
    }

    /// Returns whether a path still has to be compared, so that a difference
    /// may come from the gap.
    pub(crate) fn awaits(&self, path: &RelPath) -> bool {
        self.unchecked.contains(path)
            || self.waiting.contains(path)
            || self
                .checking
                .as_ref()
                .is_some_and(|(_, paths)| paths.binary_search(path).is_ok())
    }

    /// Notes that a read is complete.
    pub(crate) fn read_done(&mut self, path: &RelPath, ticket: u64, now: Millis) {
        if release(&mut self.ordered, path, ticket) {
            self.progress = now;
        }
    }
}

impl Turn<'_> {
    /// Handles a loss of coverage of everything (LOSS-1), and returns all
    /// watched paths, since each may have changed. After losses in a row, the
    /// comparison begins later each time.
    pub(crate) fn lose_everything(&mut self) -> Vec<RelPath> {
        self.counts.overflows += 1;
        let lost = &mut self.tracker.reconciliation;
        let in_a_row = lost
            .lost_at
            .is_some_and(|before| before + IN_A_ROW > self.now);
        lost.pause = match lost.pause {
            _ if !in_a_row => 0,
            0 => FIRST_PAUSE,
            pause => (pause * 2).min(LONGEST_PAUSE),
        };
        lost.lost_at = Some(self.now);
        lost.not_before = self.now + lost.pause;
        if lost.pause > 0 {
            self.timers.insert((lost.not_before, Timer::Reconcile));
        }
        self.tracker.files.watched_from(None).cloned().collect()
    }

    /// Begins the comparison at the start. Comparing a stat also begins the
    /// watch of a `known` path; `unknown` paths are watched already.
    pub(crate) fn begin_comparison(
        &mut self,
        known: BTreeSet<RelPath>,
        unknown: BTreeSet<RelPath>,
    ) {
        self.tracker.reconciliation.track = true;
        self.compare_known(known, unknown);
    }

    /// Begins the comparison of paths that were not watched for some time
    /// (ATTR-13).
    pub(crate) fn lose_coverage(&mut self, paths: Vec<RelPath>) {
        let (known, unknown) = paths
            .into_iter()
            .partition(|path| self.tracker.files.of(path).is_some());
        self.compare_known(known, unknown);
    }

    /// Compares the stats of the known paths, and reads the others. The
    /// arguments are sets, since building one from a sorted list is fast.
    fn compare_known(&mut self, mut known: BTreeSet<RelPath>, unknown: BTreeSet<RelPath>) {
        if !known.is_empty() || !unknown.is_empty() {
            self.counts.rescans += 1;
        }
        for path in &known {
            self.tracker.interrupt(path);
        }
        self.tracker.reconciliation.unchecked.append(&mut known);
        self.compare(unknown);
    }

    /// Handles that these paths may change without an event (LOSS-2). They are
    /// read before each answer that covers them. An audit does not count that
    /// as a difference.
    pub(crate) fn compare_unseen(&mut self, paths: Vec<RelPath>, at_once: bool) {
        if at_once {
            return self.compare(paths);
        }
        for path in paths {
            if self.tracker.files.is_watched(&path) {
                self.tracker.reads.unseen(&path);
            }
        }
    }

    fn compare(&mut self, paths: impl IntoIterator<Item = RelPath>) {
        for path in paths {
            if self.tracker.files.is_watched(&path) {
                self.tracker.interrupt(&path);
                self.tracker.reconciliation.waiting.insert(path);
            }
        }
    }

    /// Handles the result of a comparison of stats.
    pub(crate) fn compared(&mut self, number: u64, differ: Vec<RelPath>) {
        let checking = self.tracker.reconciliation.checking.as_ref();
        if checking.is_none_or(|(of, _)| *of != number) {
            return;
        }
        self.tracker.reconciliation.checking = None;
        self.tracker.reconciliation.progress = self.now;
        // A path that was lost again meanwhile is compared again.
        self.compare(differ);
    }

    /// Orders the next comparison and the next reads. During the delay after
    /// losses in a row, only if a request waits for them.
    pub(crate) fn reconcile(&mut self, is_asked: bool) {
        let lost = &self.tracker.reconciliation;
        if lost.unchecked.is_empty() && lost.waiting.is_empty() {
            return;
        }
        let paused = self.now < lost.not_before;
        if paused && !is_asked {
            return;
        }
        self.check();
        self.read_what_waits();
    }

    fn check(&mut self) {
        let lost = &mut self.tracker.reconciliation;
        if lost.checking.is_some() || lost.unchecked.is_empty() {
            return;
        }
        let paths: Vec<RelPath> = match lost.unchecked.iter().nth(COMPARED).cloned() {
            Some(next) => {
                let rest = lost.unchecked.split_off(&next);
                std::mem::replace(&mut lost.unchecked, rest)
            }
            None => std::mem::take(&mut lost.unchecked),
        }
        .into_iter()
        .collect();
        let mut files = Vec::with_capacity(paths.len());
        // A read has found another content meanwhile, so that no stat proves
        // it.
        let mut read = Vec::new();
        for path in paths
            .iter()
            .filter(|path| self.tracker.files.is_watched(path))
        {
            match self.tracker.files.of(path) {
                Some(stamp) => files.push((path.clone(), stamp)),
                None => read.push(path.clone()),
            }
        }
        let lost = &mut self.tracker.reconciliation;
        lost.checks += 1;
        lost.checking = Some((lost.checks, paths));
        let track = lost.track;
        lost.track &= !lost.unchecked.is_empty();
        self.out.push(Effect::Compare(Comparison {
            number: lost.checks,
            track,
            files,
        }));
        if track {
            self.out.extend(read.iter().cloned().map(Effect::Track));
        }
        self.compare(read);
    }

    fn read_what_waits(&mut self) {
        while self.tracker.reconciliation.ordered.len() < WINDOW {
            let waiting = &self.tracker.reconciliation.waiting;
            // A file that is being read is read again only after that, since
            // the read in progress may have begun before the loss.
            let next = waiting
                .iter()
                .find(|path| !self.tracker.reconciliation.ordered.contains_key(*path))
                .cloned();
            let Some(path) = next else {
                return;
            };
            self.tracker.reconciliation.waiting.remove(&path);
            if !self.tracker.files.is_watched(&path) {
                continue;
            }
            // The gap is noted again, since a read in progress may have taken
            // the note.
            self.tracker.live_mut(&path).hints.lose();
            let ticket = self.order_read(&path, false);
            // A file that is known to be slow delays no request.
            if !self.tracker.reads.is_slow(&path) {
                self.tracker.reconciliation.ordered.insert(path, ticket);
            }
        }
    }
}

/// Removes a read from a list of awaited ones if the completed read was ordered
/// late enough. Returns whether it was removed.
pub(crate) fn release(waiting: &mut ByPath<u64>, path: &RelPath, ticket: u64) -> bool {
    let done = waiting.get(path).is_some_and(|wanted| *wanted <= ticket);
    if done {
        waiting.remove(path);
    }
    done
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::disk::Found;
    use crate::effect::ReadOrder;
    use crate::input::Input;
    use crate::{Config, Engine, State};
    use touchmark_proto::{ConnectionId, Request, RequestId};

    struct Fixture {
        engine: Engine,
        now: Millis,
        reads: Vec<ReadOrder>,
        replies: usize,
    }

    impl Fixture {
        /// Returns an engine that watches this number of files and has no
        /// requests.
        fn new(files: usize) -> Self {
            let state = State::new(1, false);
            let mut engine = Engine::restore(Config::default(), state, [], 1);
            for number in 0..files {
                let path = RelPath::new(format!("{number:05}").as_bytes()).unwrap();
                engine.core.base.turn().watch(&path);
            }
            engine.core.base.out.clear();
            Self {
                engine,
                now: 1,
                reads: Vec::new(),
                replies: 0,
            }
        }

        fn feed(&mut self, input: Input) {
            let mut effects = Vec::new();
            self.engine.handle(self.now, input, &mut effects);
            for effect in effects {
                match effect {
                    Effect::Read(order) => self.reads.push(order),
                    Effect::Fence(fence) => self.feed(Input::FenceReached { fence }),
                    Effect::Reply { .. } => self.replies += 1,
                    _ => {}
                }
            }
        }

        fn give(&mut self, order: ReadOrder) {
            self.feed(Input::Read {
                path: order.path,
                ticket: order.ticket,
                outcome: Found::Absent.into(),
            });
        }

        /// Passes the results of all ordered reads to the engine, until no more
        /// are ordered. Returns how many there were.
        fn give_all(&mut self) -> usize {
            let mut given = 0;
            while !self.reads.is_empty() {
                let order = self.reads.remove(0);
                self.give(order);
                given += 1;
            }
            given
        }

        fn ask(&mut self) {
            self.feed(Input::Request {
                request: RequestId(7),
                connection: ConnectionId(1),
                ask: Request::Sync(touchmark_proto::daemon::Sync {}),
                until: None,
            });
        }
    }

    #[test]
    fn files_are_read_so_many_at_a_time_and_each_once() {
        let files = 3 * WINDOW;
        let mut fixture = Fixture::new(files);
        fixture.feed(Input::Overflow);
        assert_eq!(fixture.reads.len(), WINDOW);
        fixture.ask();
        // Coverage is lost again before the first read is complete. No second
        // read is ordered of files that are being read or waiting.
        fixture.feed(Input::Overflow);
        assert_eq!(fixture.reads.len(), WINDOW);
        assert_eq!(fixture.replies, 0);
        assert_eq!(fixture.give_all(), files + WINDOW);
        assert_eq!(fixture.replies, 1);
        assert!(
            !fixture
                .engine
                .core
                .base
                .tracker
                .reconciliation
                .is_under_way()
        );
    }

    #[test]
    fn losses_in_a_row_are_compared_later_unless_somebody_asks() {
        let mut fixture = Fixture::new(3);
        fixture.feed(Input::Overflow);
        assert_eq!(fixture.give_all(), 3);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            fixture.feed(Input::Overflow);
            assert_eq!(fixture.reads.len(), 0);
            let due = fixture.engine.deadline().unwrap();
            pauses.push(due - fixture.now);
            fixture.now = due;
            fixture.feed(Input::Tick);
            assert_eq!(fixture.give_all(), 3);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        // A request waits for the comparison, and for nothing else.
        fixture.feed(Input::Overflow);
        assert_eq!(fixture.reads.len(), 0);
        fixture.ask();
        assert_eq!(fixture.reads.len(), 3);
        assert_eq!(fixture.replies, 0);
        fixture.give_all();
        assert_eq!(fixture.replies, 1);
        // After a quiet time, a loss begins a new row.
        fixture.now += IN_A_ROW;
        fixture.feed(Input::Overflow);
        assert_eq!(fixture.give_all(), 3);
    }

    #[test]
    fn a_place_without_events_is_compared_at_once() {
        let mut fixture = Fixture::new(3);
        let paths: Vec<RelPath> = fixture
            .engine
            .core
            .base
            .tracker
            .files
            .watched_from(None)
            .take(2)
            .cloned()
            .collect();
        fixture.feed(Input::Unwatched {
            paths,
            at_once: true,
        });
        assert_eq!(fixture.give_all(), 2);
        assert_eq!(fixture.engine.counts().rescans, 0);
    }
}
