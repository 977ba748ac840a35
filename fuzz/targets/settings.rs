//! Arbitrary bytes for the body of the same name.
#![no_main]

#[path = "../settings.rs"]
mod settings;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settings::settings(bytes));
