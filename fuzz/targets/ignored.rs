//! Arbitrary bytes for the body of the same name.
#![no_main]

#[path = "../ignored.rs"]
mod ignored;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ignored::ignored(bytes));
