//! Decodes messages from bytes, on every wire.

use std::sync::Arc;

use super::message::{Incoming, MessageId, ServerMessage};
use super::splitter::Splitter;
use super::wire::Wire;
use super::{frames, json};
use crate::Error;

/// Decodes what a client sends into requests.
#[derive(Debug)]
pub struct Decoder {
    wire: Wire,
    splitter: Splitter,
}

impl Decoder {
    /// Returns a decoder for a new connection. `max_frame` is the maximum size
    /// of a message in bytes: [`super::MAX_FRAME`] unless configured (LIM-1).
    pub fn new(wire: Wire, max_frame: usize) -> Self {
        Self {
            wire,
            splitter: Splitter::new(wire, max_frame, wire.preface()),
        }
    }

    /// Adds received bytes, beginning with the byte that was sniffed. Call
    /// [`Decoder::next`] until it returns `None` before the next push, so that
    /// at most one message is buffered.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Returns the next complete message, or `None` if there is none yet.
    ///
    /// # Errors
    /// An error if the boundaries of messages are lost (a wrong preface or
    /// header, or a message over the limit). Send the error and close the
    /// connection. Each later call returns the same error.
    #[allow(clippy::should_implement_trait)] // `None` is "not yet", not the end
    pub fn next(&mut self) -> Result<Option<Incoming>, Error> {
        let range = self.splitter.next()?;
        Ok(range.map(|range| self.incoming(self.splitter.bytes(range))))
    }

    /// Returns the next complete message after the client has closed its side,
    /// or `None` if there is none. A last line needs no line feed. Call it
    /// until it returns `None`.
    ///
    /// # Errors
    /// The same as [`Decoder::next`], and an error for an incomplete message.
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

/// Decodes what the daemon sends into replies and events.
#[derive(Debug)]
pub struct ReplyDecoder {
    wire: Wire,
    root: Arc<[u8]>,
    splitter: Splitter,
}

impl ReplyDecoder {
    /// Returns a decoder for a client's connection. `root` is the absolute path
    /// of the workspace.
    pub fn new(wire: Wire, max_frame: usize, root: impl Into<Arc<[u8]>>) -> Self {
        Self {
            wire,
            root: root.into(),
            splitter: Splitter::new(wire, max_frame, b""),
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Returns the next complete message, or `None` if there is none yet.
    /// `method` returns the method of the request with that id, since JSON
    /// replies do not name it. Events of an unknown type are skipped, and so
    /// are JSON results of requests that `method` does not know.
    ///
    /// # Errors
    /// An error if the peer does not speak this protocol. Close the connection.
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
