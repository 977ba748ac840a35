//! The binary wire, as both connections use it.

use std::sync::Arc;
use std::time::Duration;

use touchmark_proto::codec::{
    ClientMessage, Encoder, MAX_FRAME, MessageId, ReplyDecoder, ServerMessage, Wire, frames,
};
use touchmark_proto::events::Event;
use touchmark_proto::{Reply, Request};

use crate::error::{Error, Result};

/// Sent once, before the first request.
pub(crate) const PREFACE: &[u8] = &frames::PREFACE;

#[allow(clippy::large_enum_variant)] // passes from hand to hand, is never kept in numbers
/// What the daemon sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The answer to the request of that number.
    Answer {
        /// The request's number.
        id: u64,
        /// What came of it.
        result: Result<Reply, touchmark_proto::Error>,
    },
    /// A notification.
    Event(Event),
}

/// Bytes as they came, and the messages in them.
#[derive(Debug)]
pub(crate) struct Inbox(ReplyDecoder);

impl Default for Inbox {
    fn default() -> Self {
        // Paths travel as bytes here, so that the workspace is not needed.
        Self(ReplyDecoder::new(Wire::Frames, MAX_FRAME, no_root()))
    }
}

impl Inbox {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The next complete message.
    pub(crate) fn next(&mut self) -> Result<Option<Incoming>> {
        let message = self
            .0
            .next(|_| None)
            .map_err(|error| Error::Protocol(error.to_string()))?;
        Ok(match message {
            None => None,
            Some(ServerMessage::Event(event)) => Some(Incoming::Event(event)),
            Some(ServerMessage::Reply {
                id: MessageId::Number(id),
                outcome,
            }) => Some(Incoming::Answer {
                id,
                result: outcome,
            }),
            // An error about the connection itself (`denied`, `tooLarge`).
            Some(ServerMessage::Reply {
                outcome: Err(error),
                ..
            }) => return Err(Error::Daemon(error)),
            Some(ServerMessage::Reply { id, .. }) => {
                return Err(Error::Protocol(format!("nothing was asked as {id:?}")));
            }
        })
    }
}

/// A request's frame. The daemon is told the deadline too, so that it does
/// not act on what nobody waits for any more (ATTR-9).
pub(crate) fn encode(id: u64, deadline: Option<Duration>, request: Request) -> Result<Vec<u8>> {
    let message = ClientMessage {
        id: Some(id.into()),
        within_ms: deadline.map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        request,
    };
    let mut frame = Vec::new();
    Encoder::new(Wire::Frames, MAX_FRAME, no_root()).request(&message, &mut frame)?;
    Ok(frame)
}

fn no_root() -> Arc<[u8]> {
    Arc::from(&b"/"[..])
}
