//! All inputs of the daemon's event loop, as one closed enum.

use tokio::sync::oneshot;
use touchmark_engine::{Learned, WriteOutcome};
use touchmark_proto::{ConnectionId, Error, Millis, RelPath, Reply, Request, RequestId, SessionId};

use crate::content::Report;
use crate::hooks::Consult;
use crate::run::Waiting;
use crate::store::StoreEvent;
use crate::telemetry::Described;

/// A read that is done.
#[derive(Debug)]
pub struct Reading {
    /// The path that was read.
    pub path: RelPath,
    /// The number of the order.
    pub ticket: u64,
    /// The result of the read.
    pub report: Box<Report>,
}

/// An input of the loop in [`crate::run`], which takes inputs one by one.
/// Deadlines and new connections are no events: the loop waits for them itself.
#[derive(Debug)]
#[allow(private_interfaces)] // hooks and telemetry send requests only to the loop
pub enum Event {
    /// The watcher has reported changes.
    Watch(Waiting),
    /// A client has sent a request.
    Ask {
        /// The daemon's number for the request.
        request: RequestId,
        /// The connection on which it arrived.
        connection: ConnectionId,
        /// The request.
        ask: Request,
        /// The time after which the client ignores the answer; `None`: never.
        until: Option<Millis>,
    },
    /// Reads on other threads are done.
    Read {
        /// The reads.
        readings: Vec<Reading>,
        /// Whether they are the last of those that were started together.
        last: bool,
    },
    /// A guarded write on another thread is done.
    Written {
        /// The path that was written.
        path: RelPath,
        /// The number of the order.
        ticket: u64,
        /// The outcome of the write.
        outcome: WriteOutcome,
    },
    /// Files that lost their name to a guarded write were checked again.
    Kept,
    /// A request that was processed outside of the loop has an answer.
    Answered {
        /// The request.
        request: RequestId,
        /// The answer.
        outcome: Result<Reply, Error>,
    },
    /// A question that the engine had about a request is answered.
    Learned {
        /// The request that the question is about.
        request: RequestId,
        /// What was found.
        learned: Result<Learned, Error>,
    },
    /// A look at the workspace met contents of untracked files: their hashes,
    /// with the bytes if they may be stored.
    Met(Vec<crate::scope::Met>),
    /// The store has committed facts or has failed to.
    Store(StoreEvent),
    /// A task wants to know what the state has of a session.
    Describe {
        /// The session.
        session: SessionId,
        /// Where the answer goes; `None` if the session is not known.
        answer: oneshot::Sender<Option<Described>>,
    },
    /// A hook's task has a question to the loop.
    Consult(Consult),
    /// A hook's task has an answer for its agent.
    Hooked {
        /// The request that it answers.
        request: RequestId,
        /// The answer.
        outcome: Result<Reply, Error>,
        /// The requests that revert what was begun, if the agent no longer
        /// waits for the answer (ATTR-9).
        undo: Vec<Request>,
    },
    /// A connection has ended.
    Disconnected(ConnectionId),
    /// A process that the engine observes has ended, or its end cannot be
    /// observed.
    Process {
        /// The process id.
        pid: u32,
        /// Whether it has ended.
        ended: bool,
    },
    /// SIGHUP: read the configuration again, and check that sockets and watches
    /// are still in place.
    HungUp,
    /// Something was mounted or unmounted anywhere on the system.
    Mounted,
    /// A check of what all daemons of the user use is done.
    Shared {
        /// The number of other daemons that have ended.
        ended: usize,
    },
}

impl Event {
    /// Returns how much work the event is, as a number of single inputs.
    pub fn weight(&self) -> usize {
        match self {
            Self::Read { readings, .. } => readings.len(),
            _ => 1,
        }
    }
}
