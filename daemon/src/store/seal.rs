//! A checksum for every record that is folded into the state, since SQLite's
//! pages have none.

use sha2::{Digest as _, Sha256};

/// The length of the checksum in bytes.
const LENGTH: usize = 4;

/// Appends to a fact's body the first bytes of the hash of number, time and
/// body.
pub(super) fn close(n: u64, time: u64, mut body: Vec<u8>) -> Vec<u8> {
    let seal = sum(n, time, &body);
    body.extend_from_slice(&seal[..LENGTH]);
    body
}

/// Returns the body without its checksum, or `None` if the checksum does not
/// match this number, time and body.
pub(super) fn open(n: u64, time: u64, sealed: &[u8]) -> Option<&[u8]> {
    let (body, seal) = sealed.split_at_checked(sealed.len().checked_sub(LENGTH)?)?;
    (sum(n, time, body)[..LENGTH] == *seal).then_some(body)
}

/// Returns the hash of number, time and body.
pub(super) fn sum(n: u64, time: u64, body: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(n.to_le_bytes());
    hasher.update(time.to_le_bytes());
    hasher.update(body);
    hasher.finalize().into()
}
