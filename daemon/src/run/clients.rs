//! The clients, and their requests that are not answered yet.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use touchmark_engine::requests::row;
use touchmark_proto::{
    COMMON_ERRORS, ConnectionId, Error, ErrorCode, Millis, Reply, Request, RequestId,
};

use super::fair::{Fair, Kind};
use super::produce::Production;
use super::replay::Beginning;
use super::subscriptions::Subscriptions;
use crate::desktop::Desktop;
use crate::event::{Encoded, Event};
use crate::life::Lock;
use crate::socket::{Encoding, Hub, Listener, Peer};

/// How often to look whether clients read, if all requests wait for that.
const READS_EVERY: Duration = Duration::from_millis(20);

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) connection: ConnectionId,
    kind: Kind,
    /// The errors that its method can answer in addition to the common ones.
    errors: &'static [ErrorCode],
    /// The time after which the client ignores the answer; `None`: never.
    pub(super) until: Option<Millis>,
    /// Whether the request fails if its facts cannot be stored.
    pub(super) changes_state: bool,
}

impl Asked {
    pub(super) fn new(connection: ConnectionId, ask: &Request, until: Option<Millis>) -> Self {
        Self {
            connection,
            kind: Kind::of(ask),
            errors: ask.errors(),
            until,
            changes_state: row(ask).changes,
        }
    }

    /// Returns whether the method's row in the table of methods has this error.
    fn may_fail_with(&self, code: ErrorCode) -> bool {
        COMMON_ERRORS.contains(&code) || self.errors.contains(&code)
    }
}

/// The clients of the daemon, and how they reach it.
pub(super) struct Clients {
    pub(super) listener: Listener,
    pub(super) lock: Lock,
    pub(super) hub: Arc<Hub>,
    pub(super) peers: HashMap<ConnectionId, Arc<Peer>>,
    last_connection: u64,
    /// Requests that were not taken yet.
    pub(super) waiting: Fair,
    /// Requests in the engine or in the outbox that are not answered yet.
    pub(super) asked: HashMap<RequestId, Asked>,
    /// Long answers that another thread completes.
    pub(super) production: Production,
    /// The requests that tasks have made.
    calls: HashMap<RequestId, oneshot::Sender<Result<Reply, Error>>>,
    /// The requests that revert what a task began, until its answer is sent.
    begun: HashMap<RequestId, Vec<Request>>,
    /// The connections whose answers are written at the end of the turn.
    answered: Vec<Arc<Peer>>,
    pub(super) subscriptions: Subscriptions,
    /// Subscriptions whose missed events are read on another thread.
    pub(super) beginnings: HashMap<RequestId, Beginning>,
    /// Shows the user what is lost.
    pub(super) desktop: Desktop,
    /// The processes whose end is being waited for.
    pub(super) processes: HashSet<u32>,
    /// The number of requests since the start.
    pub(super) requests: u64,
    /// When the last connection that used the daemon ended, or the last request
    /// arrived that is a use.
    pub(super) last_use: Instant,
    /// When connections are accepted again; `None` if they are.
    pub(super) accept_after: Option<Instant>,
    /// When to bind the socket again, unless its name refers to it again by
    /// then.
    pub(super) mend_place_at: Option<Instant>,
}

impl Clients {
    pub(super) fn new(listener: Listener, lock: Lock, hub: Hub) -> Self {
        Self {
            listener,
            lock,
            hub: Arc::new(hub),
            peers: HashMap::new(),
            last_connection: 0,
            waiting: Fair::default(),
            asked: HashMap::new(),
            production: Production::default(),
            calls: HashMap::new(),
            begun: HashMap::new(),
            answered: Vec::new(),
            subscriptions: Subscriptions::default(),
            beginnings: HashMap::new(),
            processes: HashSet::new(),
            requests: 0,
            desktop: Desktop::default(),
            last_use: Instant::now(),
            accept_after: None,
            mend_place_at: None,
        }
    }

    /// Returns the number of a new connection.
    pub(super) fn new_connection(&mut self) -> ConnectionId {
        self.last_connection += 1;
        ConnectionId(self.last_connection)
    }

    /// Returns the number of a new request of the daemon's own.
    pub(super) fn new_request(&self) -> RequestId {
        RequestId(self.hub.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of a new request of a task.
    pub(super) fn called(&mut self, answer: oneshot::Sender<Result<Reply, Error>>) -> RequestId {
        let request = self.new_request();
        self.calls.insert(request, answer);
        request
    }

    /// Keeps the requests that revert what a task began.
    pub(super) fn begun(&mut self, request: RequestId, undo: Vec<Request>) {
        if !undo.is_empty() {
            self.begun.insert(request, undo);
        }
    }

    /// Removes and returns the requests that revert what a task began. Called
    /// when its answer is sent.
    pub(super) fn take_begun(&mut self, request: RequestId) -> Vec<Request> {
        self.begun.remove(&request).unwrap_or_default()
    }

    /// Returns the requests of the next turn.
    pub(super) fn take_requests(&mut self) -> Vec<Event> {
        let (peers, room) = (&self.peers, self.production.has_room());
        let reads = |of| room && peers.get(&of).is_none_or(|peer| peer.reads());
        let waits = |request| self.asked.contains_key(&request);
        self.waiting.take(reads, waits)
    }

    /// Returns when to look whether clients have read their answers; `None` if
    /// no request waits for that.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let is_blocked = self.waiting.is_blocked();
        is_blocked.then(|| Instant::now() + READS_EVERY)
    }

    /// Passes an answer to the client or the task that waits for it.
    pub(super) fn answer(
        &mut self,
        asked: Asked,
        request: RequestId,
        outcome: Result<Reply, Error>,
    ) {
        if let Err(error) = &outcome {
            // Every answer to a client or task passes here, so the tests show
            // what the table of methods lacks.
            debug_assert!(
                asked.may_fail_with(error.code),
                "an error that its method's row lacks: {error:?}"
            );
        }
        if let Some(call) = self.calls.remove(&request) {
            let _nobody_waits = call.send(outcome);
            return;
        }
        self.send(asked, |peer| peer.answer(request, outcome));
    }

    /// Passes an answer to its client by `how`, which returns the answer's size.
    fn send(&mut self, asked: Asked, how: impl FnOnce(&Peer) -> usize) {
        let Asked {
            connection, kind, ..
        } = asked;
        if let Some(peer) = self.peers.get(&connection) {
            let bytes = how(peer);
            self.waiting.answered(connection, kind, bytes);
            if self.answered.last().is_none_or(|last| last.id != peer.id) {
                self.answered.push(Arc::clone(peer));
            }
        }
    }

    /// Answers a request that waits for its answer.
    pub(super) fn answered(&mut self, request: RequestId, outcome: Result<Reply, Error>) {
        if let Some(asked) = self.asked.remove(&request) {
            self.answer(asked, request, outcome);
        }
    }

    /// As [`answered`](Self::answered), with an answer that is encoded already.
    pub(super) fn answered_encoded(&mut self, request: RequestId, answer: Encoded) {
        if let Some(asked) = self.asked.remove(&request) {
            self.send(asked, |peer| peer.answer_encoded(request, Some(answer)));
        }
    }

    /// Returns whether a task has made the request.
    pub(super) fn is_call(&self, request: RequestId) -> bool {
        self.calls.contains_key(&request)
    }

    /// Returns what encodes the answer to a client's request; `None` if no client
    /// gets one.
    pub(super) fn encoding(&self, request: RequestId) -> Option<Encoding> {
        let asked = self.asked.get(&request)?;
        self.peers.get(&asked.connection)?.encoding(request)
    }

    /// Writes the turn's answers to the sockets, with one call for each client.
    pub(super) fn flush(&mut self) {
        for peer in self.answered.drain(..) {
            peer.flush();
        }
    }

    /// Removes a connection that has ended, and what waits for it. Returns
    /// whether it was the last one.
    pub(super) fn disconnected(&mut self, connection: ConnectionId) -> bool {
        self.peers.remove(&connection);
        self.subscriptions.disconnect(connection);
        self.asked.retain(|_, asked| asked.connection != connection);
        self.beginnings
            .retain(|request, _| self.asked.contains_key(request));
        self.peers.is_empty()
    }

    /// Fails the requests of all tasks, since the daemon ends.
    pub(super) fn end_calls(&mut self) {
        for (_, call) in self.calls.drain() {
            let error = Error::new(ErrorCode::ShuttingDown, "the daemon is shutting down");
            let _nobody_waits = call.send(Err(error));
        }
    }
}
