//! Runs the seeds of the fuzz targets as tests, without a nightly compiler.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

#[path = "../../fuzz/bodies.rs"]
mod bodies;

fn run(target: &str, body: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds.join(target)).unwrap() {
        body(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 4, "the corpus of {target} is there");
}

#[test]
fn frames() {
    run("frames", bodies::frames);
}

#[test]
fn json() {
    run("json", bodies::json);
}
