//! Extracts lines from a file while its bytes are read, so that a file of
//! gigabytes is never in memory as a whole.

use touchmark_proto::LineRange;

/// Collects the wanted lines from the bytes read.
pub(super) struct Part {
    range: LineRange,
    /// The limit in bytes. One more byte is collected, to show that there are
    /// more.
    most: u64,
    /// The number of the line of the next byte.
    line: u32,
    bytes: Vec<u8>,
}

impl Part {
    /// Collects all lines.
    pub(super) fn whole() -> Self {
        Self::of(LineRange::ALL, u64::MAX)
    }

    /// Collects these lines. If they have more than `most` bytes, collects
    /// `most` and one.
    pub(super) fn of(range: LineRange, most: u64) -> Self {
        Self {
            range,
            most,
            line: 1,
            bytes: Vec::new(),
        }
    }

    /// Processes the next bytes.
    pub(super) fn take(&mut self, data: &[u8]) {
        if self.most == u64::MAX && self.range == LineRange::ALL {
            return self.bytes.extend_from_slice(data);
        }
        for line in data.split_inclusive(|byte| *byte == b'\n') {
            let left = self.most.saturating_add(1) - self.bytes.len() as u64;
            if self.line > self.range.end || left == 0 {
                return;
            }
            if self.line >= self.range.start {
                let fits = usize::try_from(left).unwrap_or(usize::MAX);
                self.bytes.extend_from_slice(&line[..line.len().min(fits)]);
            }
            if line.ends_with(b"\n") {
                self.line = self.line.saturating_add(1);
            }
        }
    }

    /// Returns the collected bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(text: &str, start: u32, end: u32, most: u64, chunk: usize) -> String {
        let mut part = Part::of(LineRange { start, end }, most);
        for data in text.as_bytes().chunks(chunk) {
            part.take(data);
        }
        String::from_utf8_lossy(&part.into_bytes()).into_owned()
    }

    #[test]
    fn lines_are_picked_out_however_they_come() {
        let text = "a\nbb\n\nccc\ndd";
        for chunk in 1..=text.len() {
            assert_eq!(picked(text, 1, 1, 99, chunk), "a\n");
            assert_eq!(picked(text, 2, 4, 99, chunk), "bb\n\nccc\n");
            assert_eq!(picked(text, 5, 9, 99, chunk), "dd");
            assert_eq!(picked(text, 6, 9, 99, chunk), "");
            assert_eq!(picked(text, 2, 4, 3, chunk), "bb\n\n");
            assert_eq!(picked(text, 2, 4, 2, chunk), "bb\n");
            assert_eq!(picked(text, 1, u32::MAX, u64::MAX, chunk), text);
        }
    }
}
