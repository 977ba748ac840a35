//! Cuts the bytes of a connection into messages.

use std::ops::Range;

use super::buffer::Buffer;
use super::content_length::ContentLength;
use super::refused::invalid_request;
use super::wire::Wire;
use super::{frames, lines};
use crate::Error;

#[derive(Debug)]
enum Framing {
    Frames,
    Lines,
    ContentLength(ContentLength),
}

/// The bytes of one direction of a connection. It buffers one message of at
/// most `max_frame` bytes, and what was pushed after it.
#[derive(Debug)]
pub(super) struct Splitter {
    framing: Framing,
    buffer: Buffer,
    max_frame: usize,
    /// The bytes that must come first; empty after they were received.
    preface: &'static [u8],
    /// The first framing error. After it, the boundaries of messages are
    /// unknown.
    failed: Option<Error>,
}

impl Splitter {
    pub(super) fn new(wire: Wire, max_frame: usize, preface: &'static [u8]) -> Self {
        Self {
            framing: match wire {
                Wire::Frames => Framing::Frames,
                Wire::Lines => Framing::Lines,
                Wire::ContentLength => Framing::ContentLength(ContentLength::START),
            },
            buffer: Buffer::default(),
            max_frame,
            preface,
            failed: None,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.buffer.push(bytes);
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.bytes(range)
    }

    /// Returns the range of the next message, for [`Splitter::bytes`].
    pub(super) fn next(&mut self) -> Result<Option<Range<usize>>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let next = self.split();
        match &next {
            Ok(None) => self.buffer.settle(),
            Ok(Some(_)) => {}
            Err(error) => {
                self.failed = Some(error.clone());
                self.buffer = Buffer::default();
            }
        }
        next
    }

    fn split(&mut self) -> Result<Option<Range<usize>>, Error> {
        let (buffer, max) = (&mut self.buffer, self.max_frame);
        if !self.preface.is_empty() {
            if !frames::take_preface(buffer, self.preface)? {
                return Ok(None);
            }
            self.preface = b"";
        }
        match &mut self.framing {
            Framing::Frames => frames::next(buffer, max),
            Framing::Lines => lines::next(buffer, max),
            Framing::ContentLength(state) => state.next(buffer, max),
        }
    }

    /// Returns the range of the next message after the peer has closed the
    /// connection. The remaining bytes are a last line, or an incomplete
    /// message.
    pub(super) fn finish(&mut self) -> Result<Option<Range<usize>>, Error> {
        if let Some(range) = self.next()? {
            return Ok(Some(range));
        }
        match &self.framing {
            Framing::Lines => return Ok(lines::rest(&mut self.buffer)),
            Framing::ContentLength(state) if !state.is_between() => {}
            Framing::Frames | Framing::ContentLength(_) if !self.buffer.unread().is_empty() => {}
            _ => return Ok(None),
        }
        Err(invalid_request("the connection ended within a message"))
    }
}
