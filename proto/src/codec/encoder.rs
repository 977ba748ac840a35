//! Encodes messages to bytes, on every wire.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::message::{ClientMessage, MessageId, ServerMessage};
use super::refused::too_large;
use super::wire::Wire;
use super::{frames, json};
use crate::{Error, ErrorCode, Reply};

/// An encoded answer of a batch.
#[derive(Clone, Debug)]
pub struct Part {
    id: MessageId,
    bytes: Vec<u8>,
}

impl Part {
    /// Returns the id of the request.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Returns the answer's size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Encodes messages to bytes.
#[derive(Clone, Debug)]
pub struct Encoder {
    wire: Wire,
    max_frame: usize,
    root: Arc<[u8]>,
}

impl Encoder {
    /// Returns an encoder for one connection. `root` is the absolute path of
    /// the workspace, for the `uri` of names that are not UTF-8.
    pub fn new(wire: Wire, max_frame: usize, root: impl Into<Arc<[u8]>>) -> Self {
        Self {
            wire,
            max_frame,
            root: root.into(),
        }
    }

    /// Appends a reply or an event. A reply over the limit is replaced by the
    /// error `tooLarge` with the same id (LIM-1).
    ///
    /// # Errors
    /// `tooLarge` for an event over the limit; nothing is appended then.
    pub fn encode(&self, message: &ServerMessage, out: &mut Vec<u8>) -> Result<(), Error> {
        match (self.server(message, out), message) {
            (Err(error), ServerMessage::Reply { id, .. }) => {
                self.server(&ServerMessage::error(id.clone(), error), out)
            }
            (result, _) => result,
        }
    }

    /// Encodes one answer of a batch. What cannot be encoded is replaced by an
    /// error with the same id.
    pub fn part(&self, id: MessageId, outcome: Result<Reply, Error>) -> Part {
        let message = ServerMessage::Reply {
            id: id.clone(),
            outcome,
        };
        let bytes = self.bare(&message).or_else(|error| {
            let refused = ServerMessage::error(id.clone(), error);
            self.bare(&refused)
        });
        // An error without its text always fits.
        let bytes = bytes.unwrap_or_default();
        Part { id, bytes }
    }

    /// Appends the answers of a batch as one array, or nothing if there are
    /// none. If the array is over the limit, each answer is replaced by the
    /// error `tooLarge`.
    ///
    /// # Errors
    /// `tooLarge` if the array of errors does not fit either; nothing is
    /// appended then.
    pub fn batch(&self, parts: &[Part], out: &mut Vec<u8>) -> Result<(), Error> {
        if parts.is_empty() {
            return Ok(());
        }
        if self.wire == Wire::Frames {
            parts.iter().for_each(|part| out.extend(&part.bytes));
            return Ok(());
        }
        let Err(error) = self.framed(&array(parts), out) else {
            return Ok(());
        };
        let refused = |part: &Part| self.part(part.id.clone(), Err(error.clone()));
        let refused: Vec<Part> = parts.iter().map(refused).collect();
        self.framed(&array(&refused), out)
    }

    /// Appends a client's request. The client must have sent [`Wire::preface`]
    /// before the first one.
    ///
    /// # Errors
    /// `tooLarge` for a request over the limit; nothing is appended then.
    pub fn request(&self, message: &ClientMessage, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.wire {
            Wire::Frames => frames::append(message, self.max_frame, out),
            Wire::Lines | Wire::ContentLength => {
                self.json(&json::client_to_json(message, &self.root), out)
            }
        }
    }

    fn server(&self, message: &ServerMessage, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.wire {
            Wire::Frames => frames::append(message, self.max_frame, out),
            Wire::Lines | Wire::ContentLength => {
                self.json(&json::server_to_json(message, &self.root), out)
            }
        }
    }

    /// Encodes a message as a part of a batch.
    fn bare(&self, message: &ServerMessage) -> Result<Vec<u8>, Error> {
        match self.wire {
            Wire::Frames => {
                let mut bytes = Vec::new();
                frames::append(message, self.max_frame, &mut bytes)?;
                Ok(bytes)
            }
            Wire::Lines | Wire::ContentLength => text(&json::server_to_json(message, &self.root)),
        }
    }

    fn json(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
        self.framed(&text(value)?, out)
    }

    /// Appends JSON in the frame of its wire.
    fn framed(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if text.len() > self.max_frame {
            return Err(too_large("a message", text.len(), self.max_frame));
        }
        if self.wire == Wire::ContentLength {
            write!(out, "Content-Length: {}\r\n\r\n", text.len())
                .map_err(|error| not_encoded(&error))?;
        }
        out.extend_from_slice(text);
        if self.wire == Wire::Lines {
            out.push(b'\n');
        }
        Ok(())
    }
}

/// Returns the JSON array of a batch's answers.
fn array(parts: &[Part]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.bytes.as_slice()).collect();
    [b"[", parts.join(&b',').as_slice(), b"]"].concat()
}

fn text(value: &Value) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| not_encoded(&error))
}

fn not_encoded(error: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::InternalError,
        format!("cannot be encoded: {error}"),
    )
}
