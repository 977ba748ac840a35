//! The checksum of records and of stored contents: FNV-1a, over words where
//! there are any. It finds what is torn, not what is forged.

/// The checksum of no bytes.
pub(crate) const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the checksum of more bytes. All parts but the last have a multiple of
/// 8 bytes.
pub(crate) fn sum(sum: u64, bytes: &[u8]) -> u64 {
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = { words.iter() }.fold(sum, |sum, word| step(sum, u64::from_le_bytes(*word)));
    { rest.iter() }.fold(sum, |sum, byte| step(sum, u64::from(*byte)))
}
