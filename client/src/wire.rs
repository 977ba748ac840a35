//! The binary wire, shared by both kinds of connection.

use std::sync::Arc;
use std::time::Duration;

use touchmark_proto::codec::{
    ClientMessage, Encoder, MAX_FRAME, MessageId, ReplyDecoder, ServerMessage, Wire, frames,
};
use touchmark_proto::events::Event;
use touchmark_proto::{Reply, Request};

use crate::error::{Error, Result};

/// The bytes that are sent once, before the first request.
pub(crate) const PREFACE: &[u8] = &frames::PREFACE;

#[allow(clippy::large_enum_variant)] // few of them exist at the same time
/// A message from the daemon.
#[derive(Debug)]
pub(crate) enum Received {
    /// The answer to a request.
    Answer {
        /// The id of the request.
        id: u64,
        /// The result, or the daemon's error.
        result: Result<Reply, touchmark_proto::Error>,
    },
    /// A notification of a subscription.
    Event(Event),
}

/// Decodes received bytes into messages.
#[derive(Debug)]
pub(crate) struct Inbox(ReplyDecoder);

impl Default for Inbox {
    fn default() -> Self {
        // In frames, paths are bytes, so the workspace's root is not needed.
        Self(ReplyDecoder::new(Wire::Frames, MAX_FRAME, no_root()))
    }
}

impl Inbox {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// Returns the next complete message, or `None` if there is none yet.
    pub(crate) fn next(&mut self) -> Result<Option<Received>> {
        let message = self
            .0
            .next(|_| None)
            .map_err(|error| Error::Protocol(error.to_string()))?;
        Ok(match message {
            None => None,
            Some(ServerMessage::Event(event)) => Some(Received::Event(event)),
            Some(ServerMessage::Reply {
                id: MessageId::Number(id),
                outcome,
            }) => Some(Received::Answer {
                id,
                result: outcome,
            }),
            // An error without a request's number is about the connection
            // (`denied`, `tooLarge`).
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

/// Returns the frame of a request. It includes the deadline, so that the daemon
/// does not carry out a request whose caller no longer waits (ATTR-9).
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
