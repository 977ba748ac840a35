//! Messages out of bytes, whatever the wire.

use std::sync::Arc;

use super::message::{ClientMessage, MessageId, Rejected, ServerMessage};
use super::splitter::Splitter;
use super::{Wire, frames, json};
use crate::Error;

/// One message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A single one.
    One(Box<Result<ClientMessage, Rejected>>),
    /// A JSON-RPC batch of one or more: its answers go together, by
    /// [`super::Encoder::batch`].
    Batch(Vec<Result<ClientMessage, Rejected>>),
}

/// Turns what a client sends into requests.
#[derive(Debug)]
pub struct Decoder {
    wire: Wire,
    splitter: Splitter,
}

impl Decoder {
    /// A decoder for a new connection. `max_frame` is the largest message in
    /// bytes, [`super::MAX_FRAME`] unless configured (LIM-1).
    pub fn new(wire: Wire, max_frame: usize) -> Self {
        Self {
            wire,
            splitter: Splitter::new(wire, max_frame, wire.preface()),
        }
    }

    /// Adds bytes as they came, the sniffed one first. Ask [`Decoder::next`]
    /// until it has nothing more before the next push, so that no more than
    /// one message waits.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// The next complete message.
    ///
    /// # Errors
    /// The bytes cannot be told apart any more (a wrong preface or header, a
    /// message over the limit): answer with the error and close. Every later
    /// call answers the same.
    #[allow(clippy::should_implement_trait)] // `None` is "not yet", not the end
    pub fn next(&mut self) -> Result<Option<Incoming>, Error> {
        let range = self.splitter.next()?;
        Ok(range.map(|range| self.incoming(self.splitter.bytes(range))))
    }

    /// The client has closed its side: the next message left, if any. Ask
    /// until there is none. A last line needs no end.
    ///
    /// # Errors
    /// As [`Decoder::next`], and for half a message.
    pub fn finish(&mut self) -> Result<Option<Incoming>, Error> {
        let range = self.splitter.finish()?;
        Ok(range.map(|range| self.incoming(self.splitter.bytes(range))))
    }

    fn incoming(&self, payload: &[u8]) -> Incoming {
        match self.wire {
            Wire::Frames => Incoming::One(Box::new(frames::decode_client(payload))),
            Wire::Lines | Wire::ContentLength => json::parse(payload),
        }
    }
}

/// Turns what the daemon sends into replies and events.
#[derive(Debug)]
pub struct ReplyDecoder {
    wire: Wire,
    root: Arc<[u8]>,
    splitter: Splitter,
}

impl ReplyDecoder {
    /// A decoder for a client's connection. `root` is the absolute path of
    /// the workspace.
    pub fn new(wire: Wire, max_frame: usize, root: impl Into<Arc<[u8]>>) -> Self {
        Self {
            wire,
            root: root.into(),
            splitter: Splitter::new(wire, max_frame, b""),
        }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// The next complete message. `method` names the method of the request
    /// with that id: JSON replies do not say what they answer. Events of a
    /// type that this client does not know, and JSON results of requests that
    /// it does not know any more, are passed over.
    ///
    /// # Errors
    /// The peer does not speak this protocol: close.
    pub fn next(
        &mut self,
        method: impl Fn(&MessageId) -> Option<&'static str>,
    ) -> Result<Option<ServerMessage>, Error> {
        while let Some(range) = self.splitter.next()? {
            let payload = self.splitter.bytes(range);
            let message = match self.wire {
                Wire::Frames => Some(frames::decode_server(payload)?),
                Wire::Lines | Wire::ContentLength => {
                    json::decode_server(payload, &self.root, &method)?
                }
            };
            if message.is_some() {
                return Ok(message);
            }
        }
        Ok(None)
    }
}
