//! All inputs of the daemon's event loop, as one closed enum.

use std::fmt;

use tokio::sync::oneshot;
use touchmark_engine::{Answer, Input, Learned, ReadOrder, State, WriteOutcome};
use touchmark_proto::codec::Part;
use touchmark_proto::events::Happening;
use touchmark_proto::{
    Clock, ConnectionId, Error, Hash, Millis, RelPath, Reply, Request, RequestId,
};

use crate::content::{Met, Report};
use crate::store::Reader;
use crate::store::StoreEvent;
use crate::watch::Waiting;

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

/// A question that only the engine's state answers. It must not take long,
/// since the loop waits for it.
pub struct Look(pub Box<dyn FnOnce(&State) + Send>);

impl fmt::Debug for Look {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Look")
    }
}

type WithLog = dyn FnOnce(Result<&Reader, Error>) -> Produced + Send;

/// Work that needs the log, or says without it what is missing.
pub struct Work(pub Box<WithLog>);

impl fmt::Debug for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Work")
    }
}

/// One event that a subscriber has missed, and the previous content, from which its
/// lines are counted.
#[derive(Debug)]
pub struct Missed {
    /// When it happened.
    pub clock: Clock,
    /// What happened.
    pub happening: Happening,
    /// The content before a version; `None` for no file, and for other events.
    pub before: Option<Hash>,
}

/// What another thread has produced for a request.
#[derive(Debug)]
pub enum Produced {
    /// What the engine has asked.
    Learned(Result<Learned, Error>),
    /// An answer from the log, to which the stored contents add something.
    Recalled(Box<Answer>),
    /// No answer.
    Failed(Error),
    /// The answer to a task.
    Reply(Box<Reply>),
    /// The answer to a client.
    Encoded(Encoded),
    /// What a subscriber has missed.
    Missed(Vec<Missed>),
    /// The same, encoded.
    Events(Vec<u8>),
}

/// An encoded answer.
#[derive(Debug)]
pub enum Encoded {
    /// The bytes to be sent.
    Bytes(Vec<u8>),
    /// An answer of a batch.
    Part(Part),
}

/// An input of the loop in [`crate::run`], which takes inputs one by one.
/// Deadlines and new connections are no events: the loop waits for them itself.
#[derive(Debug)]
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
    /// A read on another thread has ended early, since nothing needed it.
    GivenUp(ReadOrder),
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
    /// A task has answered a request.
    Answered {
        /// The request.
        request: RequestId,
        /// The answer.
        outcome: Result<Box<Reply>, Error>,
        /// The requests that revert what was begun, if the client no longer
        /// waits for the answer (ATTR-9).
        undo: Vec<Request>,
    },
    /// Another thread has done something for a request.
    Produced {
        /// The request.
        request: RequestId,
        /// What it has produced.
        produced: Result<Produced, Work>,
        /// Whether a client has made the request, not a task.
        for_client: bool,
    },
    /// A task makes a request, as a client would.
    Call {
        /// The connection on whose behalf it is made.
        connection: ConnectionId,
        /// The request.
        ask: Request,
        /// The time after which the answer is not needed; `None`: never.
        until: Option<Millis>,
        /// Where the answer goes.
        answer: oneshot::Sender<Result<Reply, Error>>,
    },
    /// A task has an input for the engine.
    Feed(Input),
    /// A task looks something up in the engine's state.
    Look(Look),
    /// A look at the workspace met contents of untracked files: their hashes,
    /// with the bytes if they may be stored.
    Met(Vec<Met>),
    /// The store has committed facts or has failed to.
    Store(StoreEvent),
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
    /// Witnessed commands have made marks.
    Marked,
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
