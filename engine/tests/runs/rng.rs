//! The source of a run's choices: a seed, so that a printed seed is a test; or
//! bytes, so that a fuzzer can search for interesting choices.

pub struct Rng(Source);

enum Source {
    /// The state of splitmix64.
    Seed(u64),
    /// The bytes that are left, last first. Without any left, every choice is
    /// the first one.
    Bytes(Vec<u8>),
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(Source::Seed(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Source::Bytes(bytes.iter().rev().copied().collect()))
    }

    /// Returns whether no choices are left.
    pub fn spent(&self) -> bool {
        matches!(&self.0, Source::Bytes(left) if left.is_empty())
    }

    pub fn next(&mut self) -> u64 {
        match &mut self.0 {
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
            // Most choices are among few. One byte each makes it easy to change
            // one choice and no other.
            Source::Bytes(left) => u64::from(left.pop().unwrap_or(0)),
        }
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns true with a probability of `percent`.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
