//! Runs the seeds of the fuzz targets as tests, without a nightly compiler.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../fuzz/bodies.rs"]
mod bodies;
#[path = "../../fuzz/seeds.rs"]
mod seeds;

#[test]
fn frames() {
    seeds::each_seed("frames", bodies::frames);
}

#[test]
fn json() {
    seeds::each_seed("json", bodies::json);
}
