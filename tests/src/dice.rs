//! Random numbers from a seed, and contents that occur only once.

/// A generator of random numbers that depend only on the seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator from a seed and the name of its user.
    pub fn new(seed: u64, name: &str) -> Self {
        let start = name.bytes().fold(seed, |mixed, byte| {
            (mixed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut dice = Self(start ^ 0x9e37_79b9_7f4a_7c15);
        dice.roll();
        dice
    }

    fn roll(&mut self) -> u64 {
        // The SplitMix64 algorithm.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// Returns true with a probability of `share` percent.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// Returns one of the items.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// Returns an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index")
    }

    /// Puts the items into a random order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.index(last + 1));
        }
    }

    /// Returns a content with `id`, which must be unique, as its first line. It
    /// is mostly small, and sometimes larger than what the daemon hashes under
    /// a lease.
    pub fn content(&mut self, id: &str) -> String {
        let lines = if self.percent(2) {
            6_000 + self.below(3_000)
        } else {
            self.below(30)
        };
        let mut text = format!("{id}\n");
        for line in 0..lines {
            text.push_str(&format!("{line} of {id}: some more text to fill it\n"));
        }
        text
    }
}
