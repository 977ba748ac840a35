//! Runs `bodies::json` with arbitrary bytes.
#![no_main]

#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodies::json(bytes));
