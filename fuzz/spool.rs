//! A part of the fuzz target `journal`: contents that are not in the store yet.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;

use touchmark_proto::Hash;

use super::contents::Spool;
use crate::fuzzed::scratch;

/// Opens the bytes as a spool. Each content that it returns must have its hash,
/// and a content that is added must be returned until it is erased.
pub(crate) fn spool(bytes: &[u8]) {
    let at = scratch("spool", |_| ());
    let file = at.join("store.spool");
    fs::write(&file, bytes).unwrap();
    let recovered = || {
        let mut all = Vec::new();
        let mut spool = Spool::open(&file, true);
        spool.recover(|hash, bytes| {
            assert_eq!(Hash::of(&bytes), hash);
            all.push(bytes);
        });
        (spool, all)
    };
    let (mut spool, mut all) = recovered();
    let read: usize = all.iter().map(Vec::len).sum();
    assert!(read <= bytes.len());
    spool.add(&Hash::of(b"added"), b"added", u64::MAX);
    all.push(b"added".to_vec());
    let (mut spool, again) = recovered();
    assert_eq!(again, all);
    spool.erase(&Hash::of(b"added"));
    drop(spool);
    all.pop();
    all.retain(|one| one != b"added");
    assert_eq!(recovered().1, all);
}
