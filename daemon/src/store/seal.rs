//! A check sum on everything that is folded into state, since SQLite's pages
//! have none.

use sha2::{Digest as _, Sha256};

/// Bytes of a seal.
const LENGTH: usize = 4;

/// Closes a fact's body: a few bytes of the hash of all three.
pub(super) fn close(n: u64, time: u64, mut body: Vec<u8>) -> Vec<u8> {
    let seal = sum(n, time, &body);
    body.extend_from_slice(&seal[..LENGTH]);
    body
}

/// The body, if it is what was closed under this number and time.
pub(super) fn open(n: u64, time: u64, sealed: &[u8]) -> Option<&[u8]> {
    let (body, seal) = sealed.split_at_checked(sealed.len().checked_sub(LENGTH)?)?;
    (sum(n, time, body)[..LENGTH] == *seal).then_some(body)
}

/// The hash of a numbered body.
pub(super) fn sum(n: u64, time: u64, body: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(n.to_le_bytes());
    hasher.update(time.to_le_bytes());
    hasher.update(body);
    hasher.finalize().into()
}
