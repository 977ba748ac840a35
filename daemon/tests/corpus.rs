//! The seeds of the fuzz targets `settings` and `ignored`, on every toolchain.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

#[path = "../../fuzz/ignored.rs"]
mod ignored;
#[path = "../../fuzz/settings.rs"]
mod settings;

fn each_seed(of: &str, body: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds.join(of)).unwrap() {
        body(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 4, "the corpus is there");
}

#[test]
fn settings_seeds() {
    each_seed("settings", settings::settings);
}

#[test]
fn ignored_seeds() {
    each_seed("ignored", ignored::ignored);
}
