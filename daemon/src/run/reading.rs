//! Looking at files: reading what the engine orders, comparing stats.

use std::collections::VecDeque;

use touchmark_engine::{Comparison, Found, Hint, Input, ReadOrder};

use super::Daemon;
use crate::content::{Looked, Report};
use crate::event::{Event, Reading};

/// Larger files are read aside.
const INLINE_BYTES: u64 = 256 << 10;

/// Files read within one turn; more are read aside.
const INLINE_READS: usize = 32;

/// Files handed over at once: to wake a thread takes longer than to read one.
const TOGETHER: usize = 64;

/// So many times that many are under way at most. What is read sooner than the
/// loop takes it in only takes up memory.
const UNDER_WAY: usize = 4;

/// Reads beside the loop.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those that are not handed over yet.
    orders: VecDeque<ReadOrder>,
    /// How many have been handed over together and are not done.
    pub(super) under_way: usize,
}

impl Aside {
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
        if self.watcher.blind(&order.path) {
            // It may hang: nobody else's read waits for it.
            return self.hand_over(vec![order], false);
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

    /// Hands over what is to be read aside.
    pub(super) fn read_aside(&mut self) {
        while let Some(orders) = self.aside.next() {
            self.hand_over(orders, true);
        }
    }

    /// Has a thread read these, the large ones last; `counted` among those
    /// that others wait for.
    fn hand_over(&self, orders: Vec<ReadOrder>, counted: bool) {
        let (reader, events) = (self.reader.clone(), self.events.clone());
        tokio::task::spawn_blocking(move || {
            let mut small = Vec::with_capacity(orders.len());
            let mut large = Vec::new();
            let visit = reader.visit();
            for order in orders {
                match visit.read_up_to(INLINE_BYTES, &order) {
                    Looked::Read(report) => small.push(Reading::of(order, report)),
                    Looked::Larger(_) => large.push(order),
                }
            }
            let send = |readings, last| {
                let last = counted && last;
                let _loop_has_ended = events.send(Event::Read { readings, last });
            };
            drop(visit);
            send(small, large.is_empty());
            let mut large = large.into_iter().peekable();
            while let Some(order) = large.next() {
                let report = reader.read(&order);
                send(
                    vec![Reading::of(order, Box::new(report))],
                    large.peek().is_none(),
                );
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
            mut outcome, keep, ..
        } = *report;
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
        if let (Some(bytes), Found::File(content)) = (keep, &outcome.found) {
            self.store.keep(content.hash, bytes);
        }
        Input::Read {
            path,
            ticket,
            outcome,
        }
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
