//! Looking at files: reading what the engine orders, comparing stats.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use touchmark_engine::{Comparison, Found, Hint, Input, Learned, LinesOrder, ReadOrder};
use touchmark_proto::{RelPath, RequestId};

use super::Daemon;
use super::lane::Lane;
use crate::content::{Looked, Reader, Report};
use crate::event::{Event, Reading};

/// Larger files are read aside.
const INLINE_BYTES: u64 = 256 << 10;

/// Still larger ones are read by threads of their own: a file of gigabytes
/// must not hold up the small ones behind it.
const BATCH_BYTES: u64 = 8 << 20;

/// Threads that read many files, and that read large ones: not every core.
const THREADS: usize = 2;

/// Threads for what lies on one mount that may hang.
const MOUNT_THREADS: usize = 4;

/// Files read within one turn; more are read aside.
const INLINE_READS: usize = 32;

/// Files handed over at once: to wake a thread takes longer than to read one.
const TOGETHER: usize = 64;

/// So many times that many are under way at most. What is read sooner than the
/// loop takes it in only takes up memory.
const UNDER_WAY: usize = 4;

/// A small file whose read takes so long lies on a mount that has turned slow.
const SLOW: Duration = Duration::from_millis(100);

/// So long nothing on such a mount is read on the loop's own thread, or among
/// others; then it is tried. Twice as long each time that it is slow still.
const AVOIDED: Duration = Duration::from_secs(10);

/// The longest that a mount is avoided without a try.
const AVOIDED_LONGEST: Duration = Duration::from_secs(600);

/// A mount that should be fast and is not.
#[derive(Debug)]
struct Slow {
    until: Instant,
    avoided: Duration,
}

/// A read that nothing else is read with.
#[derive(Debug)]
enum Single {
    /// Of a whole file.
    File(ReadOrder),
    /// Of lines, for a request.
    Lines(RequestId, LinesOrder),
}

/// Reads beside the loop.
#[derive(Debug)]
pub(super) struct Aside {
    batches: Lane<Vec<ReadOrder>>,
    large: Lane<Single>,
    /// For each place of which a read may hang.
    mounts: BTreeMap<PathBuf, Lane<Single>>,
    /// Places whose reads have taken long, though nothing said they might.
    slow: BTreeMap<PathBuf, Slow>,
    /// Those that are not handed over yet.
    orders: VecDeque<ReadOrder>,
    /// How many have been handed over together and are not done.
    pub(super) under_way: usize,
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            batches: Lane::of(THREADS),
            large: Lane::of(THREADS),
            mounts: BTreeMap::new(),
            slow: BTreeMap::new(),
            orders: VecDeque::new(),
            under_way: 0,
        }
    }
}

impl Aside {
    /// Whether what lies on this mount is to be read by its own threads.
    fn avoids(&self, mount: &Path, now: Instant) -> bool {
        self.slow.get(mount).is_some_and(|slow| now < slow.until)
    }

    /// A small file on this mount took long.
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

    /// The next to hand over, if it is time to.
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
    /// A few small files are read at once, which is faster than handing them
    /// over; many, large ones, and those that may block, aside.
    pub(super) fn read(&mut self, order: ReadOrder) {
        if let Some(place) = self.slow_place(&order.path) {
            return self.read_slowly(place, Single::File(order));
        }
        let inline = self.inline_reads < INLINE_READS;
        self.inline_reads += usize::from(inline);
        if inline && let Looked::Read(report) = self.reader.visit().read_up_to(INLINE_BYTES, &order)
        {
            let input = self.report(Reading::of(order, report));
            return self.decide(input);
        }
        self.aside.orders.push_back(order);
        if self.aside.orders.len() == TOGETHER {
            self.read_aside();
        }
    }

    /// Reads lines of a large file aside; what they are is
    /// [learned](Event::Learned).
    pub(super) fn read_lines(&mut self, request: RequestId, order: LinesOrder) {
        let place = self.slow_place(&order.path);
        let single = Single::Lines(request, order);
        match place {
            Some(place) => self.read_slowly(place, single),
            None => {
                let how = one_by_one(&self.reader, &self.events);
                self.aside.large.push(single, how);
            }
        }
    }

    /// Reads what may hang: nobody else's read waits for it.
    fn read_slowly(&mut self, place: PathBuf, single: Single) {
        let lanes = &mut self.aside.mounts;
        let lane = lanes.entry(place);
        let lane = lane.or_insert_with(|| Lane::of(MOUNT_THREADS));
        lane.push(single, one_by_one(&self.reader, &self.events));
    }

    /// The place that a file is on, if a read of it may take long.
    fn slow_place(&self, path: &RelPath) -> Option<PathBuf> {
        let known = self.watcher.slow_place(path);
        known.or_else(|| {
            if self.aside.slow.is_empty() {
                return None;
            }
            let mount = self.watcher.mount_of(path);
            self.aside.avoids(&mount, Instant::now()).then_some(mount)
        })
    }

    /// Hands over what is to be read aside.
    pub(super) fn read_aside(&mut self) {
        while let Some(orders) = self.aside.next() {
            self.hand_over(orders);
        }
    }

    /// Has a thread read these; the largest are handed on.
    fn hand_over(&self, orders: Vec<ReadOrder>) {
        let (reader, events) = (self.reader.clone(), self.events.clone());
        let lane = self.aside.large.clone();
        self.aside.batches.push(orders, move |orders| {
            let mut readings = Vec::with_capacity(orders.len());
            let mut later = Vec::new();
            let visit = reader.visit();
            for order in orders {
                match visit.read_up_to(INLINE_BYTES, &order) {
                    Looked::Read(report) => readings.push(Reading::of(order, report)),
                    Looked::Larger(BATCH_BYTES..) => {
                        lane.push(Single::File(order), one_by_one(&reader, &events));
                    }
                    Looked::Larger(_) => later.push(order),
                }
            }
            drop(visit);
            let last = later.is_empty();
            let _loop_has_ended = events.send(Event::Read { readings, last });
            let mut later = later.into_iter().peekable();
            while let Some(order) = later.next() {
                let report = reader.read(&order);
                let _loop_has_ended = events.send(Event::Read {
                    readings: vec![Reading::of(order, Box::new(report))],
                    last: later.peek().is_none(),
                });
            }
        });
    }

    /// Looks which files are as they were. Without a look aside: nobody is
    /// answered about files meanwhile.
    pub(super) fn compare(&mut self, comparison: Comparison) {
        let Comparison {
            number,
            track,
            files,
        } = comparison;
        if track {
            for (path, _) in &files {
                self.watcher.track_unlinked(path);
            }
        }
        let (unknowable, seen): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|(path, _)| self.watcher.must_be_read(path));
        let mut differ = self.reader.differing(seen);
        differ.extend(unknowable.into_iter().map(|(path, _)| path));
        if track {
            for path in &differ {
                self.watcher.follow(path);
            }
        }
        self.decide(Input::Compared { number, differ });
    }

    /// What a read tells watcher and store, and the engine's part of it.
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
        if took >= SLOW && size <= INLINE_BYTES && self.watcher.slow_place(&path).is_none() {
            let mount = self.watcher.mount_of(&path);
            self.aside.found_slow(mount, Instant::now());
        }
        let real = outcome.real.as_ref();
        let linked = outcome.object.is_some() && self.watcher.watch_file(real.unwrap_or(&path));
        let there = matches!(outcome.found, Found::File(_));
        let led = self.watcher.alias(&path, real.filter(|_| there));
        if let Some(source) = self.watcher.behind_mount(real.unwrap_or(&path)) {
            outcome.real = Some(source);
        }
        if linked || led {
            // More is watched than before: what was written meanwhile may
            // have been missed.
            self.decide(Input::Hint {
                path: path.clone(),
                hint: Hint::Touched,
            });
        }
        if let Found::File(content) = &outcome.found {
            match keep {
                // An empty file has no secret in it.
                _ if outcome.secret && content.size > 0 => self.store.keep_out(content.hash),
                Some(bytes) => self.store.keep(content.hash, bytes),
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

/// Reads one and hands over what it found.
fn one_by_one(
    reader: &Reader,
    events: &UnboundedSender<Event>,
) -> impl Fn(Single) + Send + 'static {
    let (reader, events) = (reader.clone(), events.clone());
    move |single| {
        let event = match single {
            Single::File(order) => {
                let report = reader.read(&order);
                Event::Read {
                    readings: vec![Reading::of(order, Box::new(report))],
                    last: false,
                }
            }
            Single::Lines(request, order) => Event::Learned {
                request,
                learned: Ok(Learned::Lines(reader.lines(&order))),
            },
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
        // Tried, and fast, or not.
        assert!(!aside.avoids(&mount, after(10)));
        aside.found_slow(mount.clone(), after(10));
        assert!(aside.avoids(&mount, after(29)) && !aside.avoids(&mount, after(30)));
        // By its own threads: it is avoided for as long again, and no longer.
        aside.found_slow(mount.clone(), after(30));
        aside.found_slow(mount.clone(), after(40));
        assert!(aside.avoids(&mount, after(79)) && !aside.avoids(&mount, after(80)));
    }
}
