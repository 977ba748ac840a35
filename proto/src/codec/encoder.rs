//! Encodes messages to bytes, on every wire.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::message::{ClientMessage, ServerMessage};
use super::refused::too_large;
use super::wire::Wire;
use super::{frames, json};
use crate::{Error, ErrorCode};

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

    /// Appends the answers of a batch as one array, or nothing if there are
    /// none. If the array is over the limit, each answer is replaced by the
    /// error `tooLarge`.
    ///
    /// # Errors
    /// `tooLarge` if the array of errors does not fit either; nothing is
    /// appended then.
    pub fn batch(&self, replies: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Error> {
        if replies.is_empty() {
            return Ok(());
        }
        if self.wire == Wire::Frames {
            return replies.iter().try_for_each(|reply| self.encode(reply, out));
        }
        let array = |replies: &[ServerMessage]| {
            let json = |reply| json::server_to_json(reply, &self.root);
            Value::Array(replies.iter().map(json).collect())
        };
        let Err(error) = self.json(&array(replies), out) else {
            return Ok(());
        };
        let refused: Vec<ServerMessage> = replies
            .iter()
            .filter_map(|reply| match reply {
                ServerMessage::Reply { id, .. } => {
                    Some(ServerMessage::error(id.clone(), error.clone()))
                }
                ServerMessage::Event(_) => None,
            })
            .collect();
        self.json(&array(&refused), out)
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

    fn json(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(
                ErrorCode::InternalError,
                format!("cannot be encoded: {error}"),
            )
        };
        let text = serde_json::to_vec(value).map_err(|error| failed(&error))?;
        if text.len() > self.max_frame {
            return Err(too_large("a message", text.len(), self.max_frame));
        }
        if self.wire == Wire::ContentLength {
            write!(out, "Content-Length: {}\r\n\r\n", text.len())
                .map_err(|error| failed(&error))?;
        }
        out.extend_from_slice(&text);
        if self.wire == Wire::Lines {
            out.push(b'\n');
        }
        Ok(())
    }
}
