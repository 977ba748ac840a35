//! Runs `store::store` with arbitrary damage.
#![no_main]

#[path = "../store.rs"]
mod store;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| store::store(bytes));
