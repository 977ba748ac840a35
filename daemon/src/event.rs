//! Everything that can happen to the daemon, as one closed enum.

use touchmark_engine::{Learned, WriteOutcome};
use touchmark_proto::{ConnectionId, Error, Millis, RelPath, Reply, Request, RequestId};

use crate::content::Report;
use crate::hooks::Consult;
use crate::run::Waiting;
use crate::store::StoreEvent;

/// A read that is done.
#[derive(Debug)]
pub struct Reading {
    /// The path.
    pub path: RelPath,
    /// The number the order carried.
    pub ticket: u64,
    /// What was found.
    pub report: Box<Report>,
}

/// Something happened. The loop in [`crate::run`] takes them one by one; what
/// comes due by time, and connections, it sees by itself.
#[derive(Debug)]
#[allow(private_interfaces)] // hooks ask the loop alone
pub enum Event {
    /// The watcher saw something.
    Watch(Waiting),
    /// A client asks.
    Ask {
        /// The daemon's number for it.
        request: RequestId,
        /// The connection it came on.
        connection: ConnectionId,
        /// What is asked.
        ask: Request,
        /// The answer is worthless after that.
        until: Option<Millis>,
    },
    /// Reads ordered aside are done.
    Read {
        /// These.
        readings: Vec<Reading>,
        /// They are the last of those handed over together.
        last: bool,
    },
    /// A guarded write ordered aside is done.
    Written {
        /// The path.
        path: RelPath,
        /// The number the order carried.
        ticket: u64,
        /// What became of it.
        outcome: WriteOutcome,
    },
    /// Files that lost their name to a guarded write were looked at again.
    Kept,
    /// The answer to a request that was answered aside.
    Answered {
        /// Which.
        request: RequestId,
        /// The answer.
        outcome: Result<Reply, Error>,
    },
    /// Something that the engine asked for was looked up.
    Learned {
        /// The request it was asked for.
        request: RequestId,
        /// What was found.
        learned: Result<Learned, Error>,
    },
    /// Contents were met that nobody tracks: their bytes, if they may be kept.
    Met(Vec<crate::scope::Met>),
    /// The store has settled something.
    Store(StoreEvent),
    /// A hook's rules want something.
    Consult(Consult),
    /// A hook's rules have come to an answer.
    Hooked {
        /// The request it answers.
        request: RequestId,
        /// The answer.
        outcome: Result<Reply, Error>,
        /// What takes back what was begun, if nobody hears it (ATTR-9).
        undo: Vec<Request>,
    },
    /// A connection ended.
    Disconnected(ConnectionId),
    /// A process that the engine asked about has ended, or its end cannot be
    /// seen.
    Process {
        /// Which.
        pid: u32,
        /// Whether it has ended.
        ended: bool,
    },
    /// SIGHUP: look whether everything is in its place.
    HungUp,
    /// Something was mounted or unmounted, anywhere.
    Mounted,
}

impl Event {
    /// How much there is to do for it, in things that happened.
    pub fn weight(&self) -> usize {
        match self {
            Self::Read { readings, .. } => readings.len(),
            _ => 1,
        }
    }
}
