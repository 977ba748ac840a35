//! Runs `settings::settings` with arbitrary bytes.
#![no_main]

#[path = "../settings.rs"]
mod settings;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settings::settings(bytes));
