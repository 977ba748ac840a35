//! Requests that wait to be taken, fairly among connections (LIM-7).
//!
//! There are two lanes: one for methods with long answers, which also take long,
//! and one for all others. In each, the connection of which the fewest requests
//! were taken is served next. A turn takes one request of the first lane, and of
//! the other as many as fit into a few milliseconds, by what the last ones took.
//! So a client that sends a small request now and then waits for one other
//! request, however many the others have queued.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::{Discriminant, discriminant};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use touchmark_engine::requests::{paths, session};
use touchmark_proto::{ConnectionId, Request, RequestId};

use crate::event::Event;

/// The most requests of one turn, so that the first of many is answered before
/// the last has arrived.
const MOST: u64 = 1_024;

/// How long the short requests of one turn may take together, in processor time.
const BUDGET: Duration = Duration::from_millis(4);

/// The number of requests that a turn takes before any was measured, and up to
/// which none is measured if no others wait.
const FEW: u64 = 16;

/// How long no further long request is taken while the last one is not answered.
/// Several that wait for one fence would be answered in one turn.
const AFTER_LONG: Duration = Duration::from_millis(50);

/// The number of kinds of requests whose sizes are kept.
const KINDS: usize = 4_096;

/// The weight of the newest measurement in the average: one in this number.
const SMOOTHING: u64 = 4;

/// A request belongs to the lane of long ones if the latest answers to its kind
/// had more than about this number of bytes.
const LONG: usize = 32 << 10;

/// A lane's requests: the short or the long ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Short = 0,
    Long = 1,
}

/// The requests of all connections that were not taken yet.
#[derive(Debug)]
pub(super) struct Fair {
    queues: HashMap<ConnectionId, Queue>,
    /// Of each lane, the connections whose next request is in it, by the number
    /// of those that were taken.
    next: [BTreeSet<(u64, ConnectionId)>; 2],
    /// That number of the connection of each lane that was served last. One that
    /// had no request for long does not save up more.
    floor: [u64; 2],
    waiting: usize,
    /// Whether all that waits are long requests that may not be taken now.
    is_blocked: bool,
    /// The sizes of all answers.
    sizes: Sizes,
    /// Whether an answer of a method was long; none of a method that was not
    /// answered yet.
    long: HashMap<Discriminant<Request>, bool>,
    /// The number of requests taken last, and the processor time of this thread
    /// at that moment; `None` if they are not measured.
    measured: Option<(u64, u64)>,
    /// The average processor time of a short request, in nanoseconds.
    average: u64,
    /// Whether the last turn took a long request, whose time does not count.
    took_long: bool,
    /// The long request that was taken last, and when.
    last_long: Option<(RequestId, Instant)>,
}

/// The requests whose answers are about equally long: the method, and a hash of
/// the session and of about how many paths are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind(Discriminant<Request>, u64);

impl Kind {
    pub(super) fn of(ask: &Request) -> Self {
        let mut hasher = DefaultHasher::new();
        session(ask).hash(&mut hasher);
        paths(ask).len().checked_ilog2().hash(&mut hasher);
        Self(discriminant(ask), hasher.finish())
    }
}

/// The size of the longest answer to each kind of request, which the following
/// ones reduce slowly.
#[derive(Debug, Default)]
struct Sizes(HashMap<Kind, usize>);

impl Sizes {
    fn add(&mut self, kind: Kind, bytes: usize) {
        if self.0.len() == KINDS && !self.0.contains_key(&kind) {
            self.0.clear();
        }
        let size = self.0.entry(kind).or_default();
        *size = bytes.max(*size - *size / 8);
    }
}

#[derive(Debug, Default)]
struct Queue {
    taken: [u64; 2],
    /// The sizes of this connection's answers.
    sizes: Sizes,
    /// Requests, and the end of the connection after the last of them.
    events: VecDeque<Event>,
}

impl Default for Fair {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            next: Default::default(),
            floor: [0; 2],
            waiting: 0,
            is_blocked: false,
            sizes: Sizes::default(),
            long: HashMap::new(),
            measured: None,
            average: BUDGET.as_nanos() as u64 / FEW,
            took_long: false,
            last_long: None,
        }
    }
}

impl Fair {
    /// Returns whether [`take`](Self::take) would return nothing now.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0 || self.is_blocked
    }

    /// Returns whether all that waits are long requests that may not be taken now.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Notes that there is room for a long request again.
    pub(super) fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// Queues a request, or the end of its connection. What that one has asked
    /// in the lane of long requests is dropped, since no process reads the
    /// answers (ATTR-9).
    pub(super) fn push(&mut self, connection: ConnectionId, event: Event) {
        self.is_blocked = false;
        if matches!(event, Event::Disconnected(_)) {
            self.drop_long(connection);
        }
        let queue = self.queues.entry(connection).or_default();
        queue.events.push_back(event);
        self.waiting += 1;
        if queue.events.len() == 1 {
            self.line_up(connection);
        }
    }

    fn drop_long(&mut self, connection: ConnectionId) {
        let Some(mut queue) = self.queues.remove(&connection) else {
            return;
        };
        for (next, taken) in self.next.iter_mut().zip(queue.taken) {
            next.remove(&(taken, connection));
        }
        let Queue { events, sizes, .. } = &mut queue;
        let before = events.len();
        events.retain(|event| self.lane(event, sizes) == Lane::Short);
        self.waiting -= before - events.len();
        self.queues.insert(connection, queue);
        self.line_up(connection);
    }

    /// Notes the size of an answer.
    pub(super) fn answered(&mut self, connection: ConnectionId, kind: Kind, bytes: usize) {
        self.sizes.add(kind, bytes);
        *self.long.entry(kind.0).or_default() |= bytes > LONG;
        if let Some(queue) = self.queues.get_mut(&connection) {
            queue.sizes.add(kind, bytes);
        }
    }

    /// Returns the requests of the next turn. `reads` returns whether a client
    /// may get a long answer now: it reads them, and there is room for one.
    /// `waits` returns whether a request is not answered yet.
    pub(super) fn take(
        &mut self,
        reads: impl Fn(ConnectionId) -> bool,
        waits: impl Fn(RequestId) -> bool,
    ) -> Vec<Event> {
        self.measure();
        let fitting = BUDGET.as_nanos() as u64 / self.average.max(1);
        let most = usize::try_from(fitting.clamp(1, MOST)).unwrap_or(1);
        let shorts = std::iter::from_fn(|| self.pop(Lane::Short, |_| true));
        let mut events: Vec<Event> = shorts.take(most).collect();
        let taken = events.len() as u64;
        let waits =
            |(last, since): (RequestId, Instant)| since.elapsed() < AFTER_LONG && waits(last);
        let long = match self.last_long.is_some_and(waits) {
            true => None,
            false => self.pop(Lane::Long, reads),
        };
        if let Some(Event::Ask { request, .. }) = &long {
            self.last_long = Some((*request, Instant::now()));
        }
        let mixes = std::mem::replace(&mut self.took_long, long.is_some()) || self.took_long;
        events.extend(long);
        let worth = taken > 0 && !mixes && (self.waiting > 0 || taken > FEW);
        self.measured = worth.then(|| (taken, processor_time()));
        self.is_blocked = events.is_empty() && self.waiting > 0;
        events
    }

    /// Removes and returns everything, in the order of each connection.
    pub(super) fn drain(&mut self) -> Vec<Event> {
        self.next = Default::default();
        self.waiting = 0;
        let queues = std::mem::take(&mut self.queues);
        let events = queues.into_values().flat_map(|queue| queue.events);
        events.collect()
    }

    /// Returns the lane of a request, by the answers that its connection got
    /// before, else by those of all.
    fn lane(&self, event: &Event, own: &Sizes) -> Lane {
        let Event::Ask { ask, .. } = event else {
            return Lane::Short;
        };
        let kind = Kind::of(ask);
        let known = own.0.get(&kind).or_else(|| self.sizes.0.get(&kind));
        let is_long = match known {
            Some(size) => *size > LONG,
            // A kind that was not answered yet may be long, if others of its
            // method were.
            None => self.long.get(&kind.0).copied().unwrap_or(true),
        };
        match is_long {
            true => Lane::Long,
            false => Lane::Short,
        }
    }

    /// Puts a connection into the lane of its next request.
    fn line_up(&mut self, connection: ConnectionId) {
        let Some(queue) = self.queues.get(&connection) else {
            return;
        };
        let Some(event) = queue.events.front() else {
            return;
        };
        let lane = self.lane(event, &queue.sizes) as usize;
        // One request ahead of those that never stop.
        let least = self.floor[lane].saturating_sub(1);
        if let Some(queue) = self.queues.get_mut(&connection) {
            queue.taken[lane] = queue.taken[lane].max(least);
            self.next[lane].insert((queue.taken[lane], connection));
        }
    }

    fn pop(&mut self, lane: Lane, may: impl Fn(ConnectionId) -> bool) -> Option<Event> {
        let lane = lane as usize;
        let mut next = self.next[lane].iter();
        let (taken, connection) = next.find(|(_, connection)| may(*connection)).copied()?;
        self.next[lane].remove(&(taken, connection));
        self.floor[lane] = self.floor[lane].max(taken);
        let queue = self.queues.get_mut(&connection)?;
        let event = queue.events.pop_front()?;
        queue.taken[lane] += 1;
        self.waiting -= 1;
        if matches!(event, Event::Disconnected(_)) && queue.events.is_empty() {
            self.queues.remove(&connection);
        }
        self.line_up(connection);
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
#[allow(clippy::unwrap_used)]
mod tests {
    use touchmark_proto::SessionId;
    use touchmark_proto::daemon::{Ping, Sync};
    use touchmark_proto::sessions::SessionOpen;

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

    /// Returns a value in which the answers of [`ask`] are known to be short.
    fn fair() -> Fair {
        let mut fair = Fair::default();
        let ping = Kind::of(&Request::Ping(Ping {}));
        fair.answered(ConnectionId(0), ping, 50);
        fair
    }

    #[test]
    fn one_request_passes_the_many_of_others() {
        let mut fair = fair();
        for number in 0..1_000 {
            fair.push(ConnectionId(number % 5), ask(number % 5, number));
        }
        let first = fair.take(|_| true, |_| false);
        assert_eq!(first.len() as u64, FEW);
        assert_eq!(order(&first[..10]), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
        fair.push(ConnectionId(9), ask(9, 1_000));
        let next = fair.take(|_| true, |_| false);
        let place = order(&next).iter().position(|connection| *connection == 9);
        assert_eq!(place, Some(0));
    }

    fn long(connection: u64) -> Event {
        Event::Ask {
            request: RequestId(0),
            connection: ConnectionId(connection),
            ask: Request::Sync(Sync {}),
            until: None,
        }
    }

    #[test]
    fn a_turn_takes_one_long_request_and_each_short_one() {
        let mut fair = fair();
        for connection in [1, 2, 3] {
            fair.push(ConnectionId(connection), long(connection));
            fair.push(ConnectionId(connection), long(connection));
        }
        for served in [1, 2, 3, 1] {
            fair.push(ConnectionId(9), ask(9, 0));
            assert_eq!(order(&fair.take(|_| true, |_| false)), [9, served]);
        }
        // Each client's own answers count first.
        let sync = Kind::of(&Request::Sync(Sync {}));
        for (connection, size) in [(1, 2 * LONG), (2, 2 * LONG), (3, 2 * LONG), (9, 50)] {
            fair.answered(ConnectionId(connection), sync, size);
        }
        fair.push(ConnectionId(9), long(9));
        assert_eq!(order(&fair.take(|_| false, |_| false)), [9]);
        // Who does not read is not worked for, and the loop does not wait for it.
        assert!(fair.take(|_| false, |_| false).is_empty());
        assert!(fair.is_empty() && fair.is_blocked());
        assert_eq!(
            order(&fair.take(|connection| connection.0 == 3, |_| false)),
            [3]
        );
        // Nor is who has gone.
        fair.push(ConnectionId(2), Event::Disconnected(ConnectionId(2)));
        let last = fair.take(|_| true, |_| false);
        assert!(matches!(last[..], [Event::Disconnected(ConnectionId(2))]));
        assert_eq!(fair.waiting, 0);
    }

    #[test]
    fn slow_requests_are_taken_singly_and_quick_ones_together() {
        let mut fair = fair();
        let mut take_with = |average: u64| {
            fair.average = average;
            fair.measured = None;
            for number in 0..2_000 {
                fair.push(ConnectionId(1), ask(1, number));
            }
            fair.take(|_| true, |_| false).len() as u64
        };
        assert_eq!(take_with(5_000_000), 1);
        assert_eq!(take_with(400_000), 10);
        assert_eq!(take_with(1), MOST);
    }

    #[test]
    fn a_connections_requests_keep_their_order_and_end_before_it() {
        let mut fair = fair();
        for number in 1..=4 {
            fair.push(ConnectionId(1), ask(1, number));
        }
        fair.push(ConnectionId(1), Event::Disconnected(ConnectionId(1)));
        let numbers: Vec<Option<u64>> = fair
            .take(|_| true, |_| false)
            .iter()
            .map(|event| match event {
                Event::Ask { request, .. } => Some(request.0),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4), None]);
        assert!(fair.is_empty() && fair.queues.is_empty());
    }

    #[test]
    fn no_long_request_is_taken_while_the_last_one_waits() {
        let mut fair = fair();
        for connection in 1..3 {
            fair.push(ConnectionId(connection), long(connection));
        }
        assert_eq!(order(&fair.take(|_| true, |_| true)), [1]);
        assert!(fair.take(|_| true, |_| true).is_empty());
        assert!(fair.is_blocked());
        fair.unblock();
        assert_eq!(order(&fair.take(|_| true, |_| false)), [2]);
    }

    #[test]
    fn short_answers_to_others_make_no_request_short() {
        let list = |session: &str| {
            let session = SessionId::new(session).unwrap();
            Request::SessionOpen(SessionOpen::new(session))
        };
        let mut fair = Fair::default();
        fair.answered(ConnectionId(1), Kind::of(&list("long")), 1 << 20);
        for _ in 0..100 {
            fair.answered(ConnectionId(2), Kind::of(&list("short")), 100);
        }
        let lane = |name: &str| {
            let ask = Event::Ask {
                request: RequestId(1),
                connection: ConnectionId(3),
                ask: list(name),
                until: None,
            };
            fair.lane(&ask, &Sizes::default())
        };
        assert_eq!(
            [lane("long"), lane("short"), lane("another")],
            [Lane::Long, Lane::Short, Lane::Long]
        );
    }
}
