//! LSP's framing: `Content-Length: N`, a blank line, N bytes.

use std::ops::Range;

use super::buffer::Buffer;
use super::refused::{invalid_request, too_large};
use crate::Error;

/// The maximum length of a header in bytes, all its lines together.
pub(super) const MAX_HEADER: usize = 4 << 10;

/// The state of the reader: what the next bytes are.
#[derive(Debug)]
pub(super) enum ContentLength {
    /// The next bytes are lines of a header.
    Header {
        /// The number of bytes of the header so far.
        taken: usize,
        /// The value of `Content-Length`, if its line was read.
        length: Option<usize>,
    },
    /// The next bytes are a message of this number of bytes.
    Body(usize),
}

impl ContentLength {
    /// The state before the first header.
    pub(super) const START: Self = Self::Header {
        taken: 0,
        length: None,
    };

    /// Returns whether no byte of a message was received since the last one.
    pub(super) fn is_between(&self) -> bool {
        matches!(self, Self::Header { taken: 0, .. })
    }

    /// Returns the next message, or `None` if it is not yet complete.
    ///
    /// # Errors
    /// `tooLarge` for a header over 4 KiB, and as soon as a header announces
    /// more than `max` bytes (LIM-1); `invalidRequest` for a header without a
    /// length.
    pub(super) fn next(
        &mut self,
        buffer: &mut Buffer,
        max: usize,
    ) -> Result<Option<Range<usize>>, Error> {
        loop {
            match self {
                Self::Body(length) => {
                    if buffer.unread().len() < *length {
                        return Ok(None);
                    }
                    let body = buffer.take(*length);
                    *self = Self::START;
                    return Ok(Some(body));
                }
                Self::Header { taken, length } => {
                    let found = buffer.find(b'\n');
                    let line_length = found.map_or(buffer.unread().len(), |at| at + 1);
                    if *taken + line_length > MAX_HEADER {
                        return Err(too_large("a header", *taken + line_length, MAX_HEADER));
                    }
                    if found.is_none() {
                        return Ok(None);
                    }
                    *taken += line_length;
                    let line = buffer.take(line_length);
                    let line = buffer.bytes(line).trim_ascii_end();
                    if !line.is_empty() {
                        read_line(line, length)?;
                        continue;
                    }
                    let Some(length) = *length else {
                        return Err(invalid_request("the header has no Content-Length"));
                    };
                    if length > max {
                        return Err(too_large("a message", length, max));
                    }
                    *self = Self::Body(length);
                }
            }
        }
    }
}

/// Reads one line of a header. Lines other than `Content-Length` are ignored.
fn read_line(line: &[u8], length: &mut Option<usize>) -> Result<(), Error> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        return Err(invalid_request("a line of the header has no colon"));
    };
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    if !name.eq_ignore_ascii_case(b"content-length") {
        return Ok(());
    }
    // Only digits are allowed; `parse` would accept a sign.
    let number = std::str::from_utf8(value)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok());
    match (number, *length) {
        (None, _) => Err(invalid_request("Content-Length is not a number of bytes")),
        (Some(new), Some(old)) if new != old => {
            Err(invalid_request("the header has two Content-Lengths"))
        }
        (Some(new), _) => {
            *length = Some(new);
            Ok(())
        }
    }
}
