//! Runs `records::records` with arbitrary bytes.
#![no_main]

#[path = "../records.rs"]
mod records;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| records::records(bytes));
