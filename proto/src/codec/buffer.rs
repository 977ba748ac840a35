//! A queue of received bytes that were not yet taken.

use std::ops::Range;

/// The most memory in bytes that an empty buffer keeps. It is small because
/// most connections are idle.
const KEPT_CAPACITY: usize = 16 << 10;

/// A queue of bytes. Each byte is moved a bounded number of times, and
/// [`Buffer::find`] looks at it once, however small the pieces are in which the
/// bytes arrive.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// The number of bytes at the start of `bytes` that were taken.
    start: usize,
    /// The number of unread bytes that [`Buffer::find`] has searched without
    /// finding its byte.
    searched: usize,
}

impl Buffer {
    /// Appends bytes. Ranges returned by [`Buffer::take`] become invalid.
    pub(super) fn push(&mut self, more: &[u8]) {
        // At most as many bytes are moved as were taken since the last move, so
        // the total cost is linear.
        if self.start >= self.bytes.len() - self.start {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// Returns the bytes that were not yet taken.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the position of the first `byte` in the unread bytes. Until it
    /// is found, each call must search for the same byte.
    pub(super) fn find(&mut self, byte: u8) -> Option<usize> {
        let from = self.searched;
        let found = self.unread()[from..].iter().position(|b| *b == byte);
        self.searched = match found {
            Some(at) => from + at,
            None => self.unread().len(),
        };
        found.map(|at| from + at)
    }

    /// Takes the next `length` bytes, or fewer if there are fewer. Returns
    /// their range for [`Buffer::bytes`].
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let end = self.bytes.len().min(self.start + length);
        let range = self.start..end;
        self.start = end;
        self.searched = 0;
        range
    }

    /// Returns the bytes of a range that [`Buffer::take`] returned. The range
    /// is valid until the next push.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Frees memory if all bytes were taken.
    pub(super) fn settle(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            self.bytes.shrink_to(KEPT_CAPACITY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_searched_is_not_searched_again() {
        let mut buffer = Buffer::default();
        for _ in 0..1000 {
            buffer.push(b"x");
            assert_eq!(buffer.find(b'\n'), None);
            assert_eq!(buffer.searched, buffer.unread().len());
        }
        buffer.push(b"\n\n");
        assert_eq!(buffer.find(b'\n'), Some(1000));
        let line = buffer.take(1000);
        assert_eq!(buffer.bytes(line).len(), 1000);
        assert_eq!(buffer.find(b'\n'), Some(0));
    }

    #[test]
    fn what_was_taken_gives_its_memory_back() {
        let mut buffer = Buffer::default();
        buffer.push(&[0; 10 * KEPT_CAPACITY]);
        buffer.take(10 * KEPT_CAPACITY);
        buffer.settle();
        assert!(buffer.bytes.capacity() <= 2 * KEPT_CAPACITY);
        for _ in 0..100 {
            buffer.push(&[0; KEPT_CAPACITY]);
            buffer.take(KEPT_CAPACITY - 1);
        }
        assert!(buffer.bytes.len() <= 3 * KEPT_CAPACITY);
    }
}
