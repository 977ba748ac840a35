//! Reading files as the engine orders, and comparing their stats.

mod large;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use touchmark_engine::{Comparison, Found, Hint, Input, Learned, LinesOrder, ReadOrder};
use touchmark_proto::daemon::Degraded;
use touchmark_proto::{Hash, RelPath, RequestId};

use super::Daemon;
use super::lane::Lane;
use crate::content::{Looked, Reader, Report};
use crate::event::{Event, Reading};
use crate::watch::{Backlog, Watcher};
use crate::witness::{Fences, Rings};
use large::LargeReads;

/// The largest file, in bytes, that the loop's own thread reads.
const INLINE_BYTES: u64 = 256 << 10;

/// The largest file, in bytes, that is read together with others. Larger ones
/// have separate threads, so that a file of gigabytes does not block small
/// ones.
const BATCH_BYTES: u64 = 8 << 20;

/// The number of threads that read many files, and of those that read large
/// ones. They must not use every core.
const THREADS: usize = 2;

/// The number of threads for each mount whose reads may block.
const MOUNT_THREADS: usize = 4;

/// The most files that the loop's thread reads within one turn. More are read
/// on other threads.
const INLINE_READS: usize = 32;

/// The most files that a thread receives together, since waking it takes longer
/// than reading one.
const TOGETHER: usize = 64;

/// The most groups of [`TOGETHER`] files that are read at the same time. What
/// is read before the loop can process it only uses memory.
const UNDER_WAY: usize = 4;

/// A mount is slow if reading a small file from it takes this long.
const SLOW: Duration = Duration::from_millis(100);

/// How long files on a slow mount are read neither on the loop's thread nor
/// together with others. After that it is tried. The time doubles each time
/// that the mount is still slow.
const AVOIDED: Duration = Duration::from_secs(10);

/// The longest time that a slow mount is avoided without a try.
const AVOIDED_LONGEST: Duration = Duration::from_secs(600);

/// A mount that was expected to be fast and was found slow.
#[derive(Debug)]
struct Slow {
    until: Instant,
    avoided: Duration,
}

/// A read that is done alone, not in a group.
#[derive(Debug)]
enum Single {
    /// A read of a whole file.
    File(ReadOrder),
    /// A read of lines, for a request.
    Lines(RequestId, LinesOrder),
}

/// The watcher, and the reads that it causes.
pub(super) struct Disk {
    pub(super) watcher: Watcher,
    /// Events of the watcher that the loop has not taken yet.
    pub(super) backlog: Arc<Backlog>,
    pub(super) aside: Aside,
    /// The marks of witnessed commands.
    pub(super) rings: Rings,
    /// The number of files that the loop's thread has read in this turn.
    inline_reads: usize,
    /// When degraded places are looked at next; `None` if there are none.
    pub(super) next_mend: Option<Instant>,
    /// The degraded conditions that were last reported to subscribers.
    pub(super) told: Vec<Degraded>,
}

impl Disk {
    pub(super) fn new(watcher: Watcher, backlog: Arc<Backlog>, rings: Rings) -> Self {
        Self {
            rings,
            watcher,
            backlog,
            aside: Aside::default(),
            inline_reads: 0,
            next_mend: None,
            told: Vec::new(),
        }
    }

    pub(super) fn track(&mut self, path: &RelPath) {
        self.aside.large_reads.need(path, true);
        self.watcher.track(path);
    }

    pub(super) fn untrack(&mut self, path: &RelPath) {
        self.aside.large_reads.need(path, false);
        self.watcher.untrack(path);
    }

    pub(super) fn begin_turn(&mut self) {
        self.inline_reads = 0;
    }
}

/// The reads on other threads.
#[derive(Debug)]
pub(super) struct Aside {
    batches: Lane<Vec<ReadOrder>>,
    large: Lane<Single>,
    large_reads: LargeReads,
    /// A lane for each place where reads may block.
    mounts: BTreeMap<PathBuf, Lane<Single>>,
    /// Mounts whose reads took long, although their kind did not suggest it.
    slow: BTreeMap<PathBuf, Slow>,
    /// Orders that no thread has received yet.
    orders: VecDeque<ReadOrder>,
    /// The number of groups that threads have received and not completed.
    pub(super) under_way: usize,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            batches: Lane::of(THREADS),
            large: Lane::of(THREADS),
            large_reads: LargeReads::default(),
            mounts: BTreeMap::new(),
            slow: BTreeMap::new(),
            orders: VecDeque::new(),
            under_way: 0,
        }
    }
}

impl Aside {
    /// Returns whether files on this mount are read by its own threads.
    fn avoids(&self, mount: &Path, now: Instant) -> bool {
        self.slow.get(mount).is_some_and(|slow| now < slow.until)
    }

    /// Notes that reading a small file on this mount took long.
    fn found_slow(&mut self, mount: PathBuf, now: Instant) {
        let slow = self.slow.entry(mount).or_insert_with_key(|mount| {
            tracing::warn!("reads are slow below {}", mount.display());
            let avoided = AVOIDED / 2;
            Slow {
                until: now,
                avoided,
            }
        });
        if now >= slow.until {
            slow.avoided = (slow.avoided * 2).min(AVOIDED_LONGEST);
        }
        slow.until = now + slow.avoided;
    }

    /// Returns the next group of orders; `None` if there is none, or enough
    /// groups are in progress.
    fn next(&mut self) -> Option<Vec<ReadOrder>> {
        let some = self.under_way < UNDER_WAY && !self.orders.is_empty();
        some.then(|| {
            self.under_way += 1;
            let count = self.orders.len().min(TOGETHER);
            self.orders.drain(..count).collect()
        })
    }
}

impl Daemon {
    /// Reads a file. A few small files are read immediately, which is faster
    /// than using another thread. Many files, large ones, and those whose read
    /// may block, are read on other threads.
    pub(super) fn read(&mut self, order: ReadOrder) {
        if let Some(place) = self.slow_place(&order.path) {
            return self.read_slowly(place, Single::File(order));
        }
        // The other threads pass the witnesses' fences.
        let inline = self.disk.inline_reads < INLINE_READS && self.disk.rings.fences().is_empty();
        self.disk.inline_reads += usize::from(inline);
        if inline
            && let Looked::Read(report) = self
                .workspace
                .files
                .visit()
                .read_up_to(INLINE_BYTES, &order)
        {
            if !self.is_of_another_workspace() {
                let input = self.report(Reading::of(order, report));
                self.decide(input);
            }
            return;
        }
        self.disk.aside.orders.push_back(order);
        if self.disk.aside.orders.len() == TOGETHER {
            self.read_aside();
        }
    }

    /// Returns whether what was just read may be in a directory that has
    /// replaced the workspace's. If so, the daemon ends: it did not watch that
    /// directory, so it cannot know who wrote there (ATTR-13).
    pub(super) fn is_of_another_workspace(&mut self) -> bool {
        self.disk.watcher.check_root();
        self.end_if_gone()
    }

    /// Reads lines of a large file on another thread. The loop receives them by
    /// [`Input::Learned`].
    pub(super) fn read_lines(&mut self, request: RequestId, order: LinesOrder) {
        let place = self.slow_place(&order.path);
        let single = Single::Lines(request, order);
        match place {
            Some(place) => self.read_slowly(place, single),
            None => {
                let how = self.one_by_one();
                self.disk.aside.large.push(single, how);
            }
        }
    }

    /// Queues a read that may block in the lane of its place, so that it delays
    /// no other read.
    fn read_slowly(&mut self, place: PathBuf, single: Single) {
        let how = self.one_by_one();
        if let Single::File(order) = &single {
            self.disk.aside.large_reads.queued(&order.path);
        }
        let lanes = &mut self.disk.aside.mounts;
        let lane = lanes.entry(place);
        let lane = lane.or_insert_with(|| Lane::of(MOUNT_THREADS));
        lane.push(single, how);
    }

    /// Returns a function that does one read and sends its result to the loop.
    fn one_by_one(&self) -> impl Fn(Single) + Send + 'static + use<> {
        let reads = &self.disk.aside.large_reads;
        let fences = self.disk.rings.fences();
        one_by_one(&self.workspace.files, &self.events, reads, fences)
    }

    /// Passes the results of reads on another thread to the engine.
    pub(super) fn have_read(&mut self, readings: Vec<Reading>, last: bool) {
        self.disk.aside.under_way -= usize::from(last);
        if self.is_of_another_workspace() {
            return;
        }
        for reading in readings {
            let input = self.report(reading);
            self.feed(input);
        }
    }

    /// Repeats a read that was given up, if it is needed again.
    pub(super) fn given_up(&mut self, order: ReadOrder) {
        if self.disk.watcher.is_tracked(&order.path) {
            return self.read(order);
        }
        self.feed(Input::Read {
            path: order.path,
            ticket: order.ticket,
            outcome: Found::Unstable { size: 0 }.into(),
        });
    }

    /// Returns the place that a file is on, if a read of it may take long.
    fn slow_place(&self, path: &RelPath) -> Option<PathBuf> {
        let known = self.disk.watcher.slow_place(path);
        known.or_else(|| {
            if self.disk.aside.slow.is_empty() {
                return None;
            }
            let mount = self.disk.watcher.mount_of(path);
            self.disk
                .aside
                .avoids(&mount, Instant::now())
                .then_some(mount)
        })
    }

    /// Passes the queued orders to other threads.
    pub(super) fn read_aside(&mut self) {
        while let Some(orders) = self.disk.aside.next() {
            self.hand_over(orders);
        }
    }

    /// Queues these reads for a thread, which passes the largest ones on.
    fn hand_over(&self, orders: Vec<ReadOrder>) {
        let (reader, events) = (self.workspace.files.clone(), self.events.clone());
        let fences = self.disk.rings.fences().clone();
        let lane = self.disk.aside.large.clone();
        let reads = self.disk.aside.large_reads.clone();
        self.disk.aside.batches.push(orders, move |orders| {
            let mut readings = Vec::with_capacity(orders.len());
            let mut later = Vec::new();
            let visit = reader.visit();
            for order in orders {
                match visit.read_up_to(INLINE_BYTES, &order) {
                    Looked::Read(report) => readings.push(Reading::of(order, report)),
                    Looked::Larger(BATCH_BYTES..) => {
                        reads.queued(&order.path);
                        let how = one_by_one(&reader, &events, &reads, &fences);
                        lane.push(Single::File(order), how);
                    }
                    Looked::Larger(_) => later.push(order),
                }
            }
            drop(visit);
            let last = later.is_empty();
            fences.pass();
            let _loop_has_ended = events.send(Event::Read { readings, last });
            let mut later = later.into_iter().peekable();
            while let Some(order) = later.next() {
                let report = reader.read(&order);
                fences.pass();
                let _loop_has_ended = events.send(Event::Read {
                    readings: vec![Reading::of(order, Box::new(report))],
                    last: later.peek().is_none(),
                });
            }
        });
    }

    /// Checks which files are unchanged, on this thread: no request about files
    /// is answered before this is done.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        let Comparison {
            number,
            track,
            files,
        } = comparison;
        if track {
            for (path, _) in &files {
                self.disk.watcher.track_unlinked(path);
            }
        }
        let (unknowable, seen): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|(path, _)| self.disk.watcher.must_be_read(path));
        let mut differ = self.workspace.files.differing(seen);
        differ.extend(unknowable.into_iter().map(|(path, _)| path));
        if track {
            for path in &differ {
                self.disk.watcher.follow(path);
            }
        }
        self.decide(Input::Compared { number, differ });
    }

    /// Reports a read to the watcher and the store. Returns the engine's input.
    pub(super) fn report(&mut self, reading: Reading) -> Input {
        let Reading {
            path,
            ticket,
            report,
        } = reading;
        let Report {
            mut outcome,
            keep,
            took,
            size,
        } = *report;
        if took >= SLOW && size <= INLINE_BYTES && self.disk.watcher.slow_place(&path).is_none() {
            let mount = self.disk.watcher.mount_of(&path);
            self.disk.aside.found_slow(mount, Instant::now());
        }
        let real = outcome.real.as_ref();
        let linked =
            outcome.object.is_some() && self.disk.watcher.watch_file(real.unwrap_or(&path));
        let there = matches!(outcome.found, Found::File(_));
        let led = self.disk.watcher.alias(&path, real.filter(|_| there));
        if let Some(source) = self.disk.watcher.behind_mount(real.unwrap_or(&path)) {
            outcome.real = Some(source);
        }
        if linked || led {
            // More is watched than before this read. Writes before that may
            // have been missed.
            self.decide(Input::Hint {
                path: path.clone(),
                hint: Hint::Touched,
            });
        }
        // An undo needs it, should the symlink be replaced (UNDO-6).
        if let Some(to) = &outcome.link {
            self.storage.store.keep(Hash::of(to), Arc::clone(to));
        }
        if let Found::File(content) = &outcome.found {
            match keep {
                // An empty file contains no secret.
                _ if outcome.secret && content.size > 0 => {
                    self.storage.store.keep_out(content.hash)
                }
                Some(bytes) => self.storage.store.keep(content.hash, bytes),
                None => {}
            }
        }
        Input::Read {
            path,
            ticket,
            outcome,
        }
    }
}

/// Returns a function that does one read and sends its result to the loop.
fn one_by_one(
    reader: &Reader,
    events: &UnboundedSender<Event>,
    reads: &LargeReads,
    fences: &Fences,
) -> impl Fn(Single) + Send + 'static + use<> {
    let (reader, events, reads) = (reader.clone(), events.clone(), reads.clone());
    let fences = fences.clone();
    move |single| {
        let event = match single {
            Single::File(order) => {
                let is_needed = || reads.is_needed(&order.path);
                let report = reader.visit_while(&is_needed).read_whole(&order);
                fences.pass();
                match reads.ended(&order.path) {
                    true => Event::Read {
                        readings: vec![Reading::of(order, Box::new(report))],
                        last: false,
                    },
                    false => Event::GivenUp(order),
                }
            }
            Single::Lines(request, order) => Event::Feed(Input::Learned {
                request,
                learned: Ok(Learned::Lines(reader.lines(&order))),
            }),
        };
        let _loop_has_ended = events.send(event);
    }
}

impl Reading {
    fn of(order: ReadOrder, report: Box<Report>) -> Self {
        let ReadOrder { path, ticket, .. } = order;
        Self {
            path,
            ticket,
            report,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_has_turned_slow_is_avoided_longer_each_time() {
        let (mut aside, start) = (Aside::default(), Instant::now());
        let (mount, other) = (PathBuf::from("/w/m"), Path::new("/w"));
        let after = |seconds| start + Duration::from_secs(seconds);
        aside.found_slow(mount.clone(), start);
        assert!(aside.avoids(&mount, after(9)) && !aside.avoids(other, after(9)));
        // After that time the mount is tried, and is fast or not.
        assert!(!aside.avoids(&mount, after(10)));
        aside.found_slow(mount.clone(), after(10));
        assert!(aside.avoids(&mount, after(29)) && !aside.avoids(&mount, after(30)));
        // These reads were done by the mount's own threads, so they do not
        // double the time again.
        aside.found_slow(mount.clone(), after(30));
        aside.found_slow(mount.clone(), after(40));
        assert!(aside.avoids(&mount, after(79)) && !aside.avoids(&mount, after(80)));
    }
}
