//! Runs `ignored::ignored` with arbitrary bytes.
#![no_main]

#[path = "../ignored.rs"]
mod ignored;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ignored::ignored(bytes));
