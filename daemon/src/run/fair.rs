//! Requests that wait to be taken, fairly among connections (LIM-7).
//!
//! The connection of which the fewest requests were taken is served next. So a
//! client that sends one request now and then waits for one other request,
//! however many the others have queued. A turn takes as many requests as fit
//! into a few milliseconds, by what the last ones took.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use touchmark_proto::ConnectionId;

use crate::event::Event;

/// The most requests of one turn, so that the first of many is answered before
/// the last has arrived.
const MOST: u64 = 1_024;

/// How long the requests of one turn may take together, in processor time.
const BUDGET: Duration = Duration::from_millis(4);

/// The number of requests that a turn takes before any was measured, and up to
/// which none is measured if no others wait.
const FEW: u64 = 16;

/// The weight of the newest measurement in the average: one in this number.
const SMOOTHING: u64 = 4;

/// The requests of all connections that were not taken yet.
#[derive(Debug)]
pub(super) struct Fair {
    queues: HashMap<ConnectionId, Queue>,
    /// The connections with requests, by the number of those that were taken.
    next: BTreeSet<(u64, ConnectionId)>,
    waiting: usize,
    /// That number of the connection served last. One that had no request for
    /// long does not save up more.
    floor: u64,
    /// The number of requests taken last, and the processor time of this thread
    /// at that moment; `None` if they are not measured.
    measured: Option<(u64, u64)>,
    /// The average processor time of a request, in nanoseconds.
    average: u64,
}

#[derive(Debug, Default)]
struct Queue {
    taken: u64,
    /// Requests, and the end of the connection after the last of them.
    events: VecDeque<Event>,
}

impl Default for Fair {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            next: BTreeSet::new(),
            waiting: 0,
            floor: 0,
            measured: None,
            average: BUDGET.as_nanos() as u64 / FEW,
        }
    }
}

impl Fair {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Queues a request, or the end of its connection.
    pub(super) fn push(&mut self, connection: ConnectionId, event: Event) {
        let queue = self.queues.entry(connection).or_default();
        if queue.events.is_empty() {
            // One request ahead of those that never stop.
            queue.taken = queue.taken.max(self.floor.saturating_sub(1));
            self.next.insert((queue.taken, connection));
        }
        queue.events.push_back(event);
        self.waiting += 1;
    }

    /// Returns the requests of the next turn.
    pub(super) fn take(&mut self) -> Vec<Event> {
        self.measure();
        let fitting = BUDGET.as_nanos() as u64 / self.average.max(1);
        let most = usize::try_from(fitting.clamp(1, MOST)).unwrap_or(1);
        let count = most.min(self.waiting);
        let events: Vec<Event> = std::iter::from_fn(|| self.pop()).take(count).collect();
        let taken = events.len() as u64;
        let worth = taken > 0 && (self.waiting > 0 || taken > FEW);
        self.measured = worth.then(|| (taken, processor_time()));
        events
    }

    /// Removes and returns everything, in the order of each connection.
    pub(super) fn drain(&mut self) -> Vec<Event> {
        self.next.clear();
        self.waiting = 0;
        let queues = std::mem::take(&mut self.queues);
        let events = queues.into_values().flat_map(|queue| queue.events);
        events.collect()
    }

    fn pop(&mut self) -> Option<Event> {
        let (taken, connection) = self.next.pop_first()?;
        self.floor = self.floor.max(taken);
        let queue = self.queues.get_mut(&connection)?;
        let event = queue.events.pop_front()?;
        queue.taken += 1;
        self.waiting -= 1;
        if !queue.events.is_empty() {
            self.next.insert((queue.taken, connection));
        } else if matches!(event, Event::Disconnected(_)) {
            self.queues.remove(&connection);
        }
        Some(event)
    }

    /// Updates the average by what was taken last.
    fn measure(&mut self) {
        if let Some((taken, since)) = self.measured.take() {
            let each = processor_time().saturating_sub(since) / taken;
            self.average = (self.average * (SMOOTHING - 1) + each) / SMOOTHING;
        }
    }
}

/// Returns the processor time of this thread, in nanoseconds. Waiting for the
/// disk does not count: requests that are stored together wait once.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use touchmark_proto::daemon::Ping;
    use touchmark_proto::{Request, RequestId};

    use super::*;

    fn ask(connection: u64, number: u64) -> Event {
        Event::Ask {
            request: RequestId(number),
            connection: ConnectionId(connection),
            ask: Request::Ping(Ping {}),
            until: None,
        }
    }

    /// The connections of events, in their order.
    fn order(events: &[Event]) -> Vec<u64> {
        let connection = |event: &Event| match event {
            Event::Ask { connection, .. } | Event::Disconnected(connection) => connection.0,
            other => unreachable!("{other:?}"),
        };
        events.iter().map(connection).collect()
    }

    #[test]
    fn one_request_passes_the_many_of_others() {
        let mut fair = Fair::default();
        for number in 0..1_000 {
            fair.push(ConnectionId(number % 5), ask(number % 5, number));
        }
        let first = fair.take();
        assert_eq!(first.len() as u64, FEW);
        assert_eq!(order(&first[..10]), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
        fair.push(ConnectionId(9), ask(9, 1_000));
        let next = fair.take();
        let place = order(&next).iter().position(|connection| *connection == 9);
        assert_eq!(place, Some(0));
    }

    #[test]
    fn slow_requests_are_taken_singly_and_quick_ones_together() {
        let mut fair = Fair::default();
        let mut take_with = |average: u64| {
            fair.average = average;
            fair.measured = None;
            for number in 0..2_000 {
                fair.push(ConnectionId(1), ask(1, number));
            }
            fair.take().len() as u64
        };
        assert_eq!(take_with(5_000_000), 1);
        assert_eq!(take_with(400_000), 10);
        assert_eq!(take_with(1), MOST);
    }

    #[test]
    fn a_connections_requests_keep_their_order_and_end_before_it() {
        let mut fair = Fair::default();
        for number in 1..=4 {
            fair.push(ConnectionId(1), ask(1, number));
        }
        fair.push(ConnectionId(1), Event::Disconnected(ConnectionId(1)));
        let numbers: Vec<Option<u64>> = fair
            .take()
            .iter()
            .map(|event| match event {
                Event::Ask { request, .. } => Some(request.0),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4), None]);
        assert!(fair.is_empty() && fair.queues.is_empty());
    }
}
