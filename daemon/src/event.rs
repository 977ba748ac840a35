//! Everything that can happen to the daemon, as one closed enum.

use touchmark_proto::{ConnectionId, Millis, Request, RequestId};

/// Something happened. The loop in [`crate::run`] takes them one by one.
#[derive(Debug)]
pub enum Event {
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
    /// A connection ended.
    Disconnected(ConnectionId),
}
