//! The seeds of the fuzz target `store`, on every toolchain.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

#[path = "../../fuzz/store.rs"]
mod store;

#[test]
fn seeds_of_damage() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/store");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        store::store(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 10, "the corpus is there");
}
