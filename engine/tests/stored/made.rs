//! Makes records of every kind with any fields, out of nothing but the decoder:
//! items of CBOR are put in a row as long as the decoder wants more of them.

use touchmark_engine::ledger::stored::Unreadable;

/// A splitmix64 generator.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns an item, or the head of a list. There are few paths, sessions and
    /// hashes, so that facts concern the same files.
    fn item(&mut self) -> Vec<u8> {
        let head = |kind: u8, length: u64| match u8::try_from(length) {
            Ok(short @ 0..24) => vec![kind | short],
            Ok(byte) => vec![kind | 24, byte],
            Err(_) => [&[kind | 27][..], &length.to_be_bytes()].concat(),
        };
        match self.below(9) {
            // Few are long, since each item of a list may be one.
            0 => {
                let most = [3, 20][self.below(2) as usize];
                head(0x80, self.below(most))
            }
            1 => head(0, self.below(42)),
            // Any length, within the range of times and counts.
            2 => {
                let shift = 1 + self.below(63);
                head(0, self.next() >> shift)
            }
            3 => head(0x20, self.below(42)),
            4 => [vec![0x58, 32], vec![self.below(5) as u8; 32]].concat(),
            5 => {
                let paths = [&b"a"[..], b"b", b"d/a", b"d/\xff", b"d/e/f", b""];
                let path = paths[self.below(6) as usize];
                [&head(0x40, path.len() as u64), path].concat()
            }
            6 => {
                let text = ["", "s", "t", "Ünïcode ☃"][self.below(4) as usize];
                [&head(0x60, text.len() as u64), text.as_bytes()].concat()
            }
            7 => vec![0xf4 + self.below(2) as u8],
            _ => vec![0xf6],
        }
    }

    /// Returns a value whose bytes begin with these.
    pub(crate) fn made<T>(
        &mut self,
        bytes: &[u8],
        decode: impl Fn(&[u8]) -> Result<T, Unreadable>,
    ) -> T {
        let mut items = vec![bytes.to_vec()];
        let mut refused = 0;
        loop {
            // A field that the type does not have may go on for long.
            if items.len() > 40 {
                items.truncate(1);
            }
            items.push(self.item());
            match decode(&items.concat()) {
                Ok(value) => return value,
                Err(Unreadable::Damaged(cause)) if cause.contains("end of input") => refused = 0,
                Err(_) => {
                    items.pop();
                    refused += 1;
                    // What came before cannot be continued.
                    if refused == 200 {
                        items.truncate(1 + self.below(items.len() as u64) as usize);
                        refused = 0;
                    }
                }
            }
        }
    }
}
