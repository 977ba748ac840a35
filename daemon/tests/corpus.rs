//! The seeds of the fuzz target `settings`, on every toolchain.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

#[path = "../../fuzz/settings.rs"]
mod settings;

#[test]
fn settings_seeds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/settings");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        settings::settings(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 4, "the corpus is there");
}
