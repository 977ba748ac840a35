//! Bytes that came and were not taken yet.

use std::ops::Range;

/// An empty buffer keeps at most this much memory: idle connections are many.
const KEPT_CAPACITY: usize = 16 << 10;

/// A queue of bytes. Every byte is moved a bounded number of times and looked
/// at once by [`Buffer::find`], however small the pieces it came in.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Everything before was taken.
    start: usize,
    /// Everything unread before was searched in vain; counted from `start`.
    searched: usize,
}

impl Buffer {
    /// Adds what came. Ranges given out before are void.
    pub(super) fn push(&mut self, more: &[u8]) {
        // No more is moved than was taken since the last move: linear in all.
        if self.start >= self.bytes.len() - self.start {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(more);
    }

    /// What was not taken yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// The first place of `byte` in what is unread. The same byte must be
    /// asked for until it is found.
    pub(super) fn find(&mut self, byte: u8) -> Option<usize> {
        let from = self.searched;
        let found = self.unread()[from..].iter().position(|b| *b == byte);
        self.searched = match found {
            Some(at) => from + at,
            None => self.unread().len(),
        };
        found.map(|at| from + at)
    }

    /// Takes the next `length` bytes, at most those that are there.
    pub(super) fn take(&mut self, length: usize) -> Range<usize> {
        let end = self.bytes.len().min(self.start + length);
        let range = self.start..end;
        self.start = end;
        self.searched = 0;
        range
    }

    /// The bytes of a range that [`Buffer::take`] gave, until the next push.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Gives memory back once everything was taken.
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
