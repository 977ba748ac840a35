//! The framing of JSON lines: one message per line.

use std::ops::Range;

use super::buffer::Buffer;
use super::refused::too_large;
use crate::Error;

/// Returns the next line that is not blank, without its line feed, or `None` if
/// no line is complete.
///
/// # Errors
/// `tooLarge` as soon as a line has more than `max` bytes, whether or not its
/// end was received (LIM-1).
pub(super) fn next(buffer: &mut Buffer, max: usize) -> Result<Option<Range<usize>>, Error> {
    loop {
        let found = buffer.find(b'\n');
        let length = found.unwrap_or(buffer.unread().len());
        if length > max {
            return Err(too_large("a line", length, max));
        }
        if found.is_none() {
            return Ok(None);
        }
        let line = buffer.take(length);
        buffer.take(1);
        if !is_blank(buffer.bytes(line.clone())) {
            return Ok(Some(line));
        }
    }
}

/// Returns the last line, if the client closed the connection without ending
/// it.
pub(super) fn rest(buffer: &mut Buffer) -> Option<Range<usize>> {
    let line = buffer.take(buffer.unread().len());
    (!is_blank(buffer.bytes(line.clone()))).then_some(line)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}
